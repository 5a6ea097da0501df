// Drives the schemas of jazz-tools for the tests; the protocol is driver.mjs's.
//
// An actor is an account as `startWorker` logs it in; values are named by their ids.
import { Group, co } from "jazz-tools";
import { startWorker } from "jazz-tools/worker";
import { WebSocket } from "ws";
import * as schemas from "./schemas.mjs";
import { serve } from "./serve.mjs";

const workers = new Map();
const UNTIL_MS = 20_000;

const as = (actor) => ({ loadAs: workers.get(actor).worker });

function loaded(value, what) {
  if (!value?.$isLoaded) throw new Error(`${what} is ${value?.$jazz?.loadingState}`);
  return value;
}

// Dates are encoded as {"$date": "..."}, undefined as {"$undefined": true}.
function revive(json) {
  if (json === null || typeof json !== "object") return json;
  if ("$date" in json) return new Date(json.$date);
  if ("$undefined" in json) return undefined;
  if (Array.isArray(json)) return json.map(revive);
  return Object.fromEntries(Object.entries(json).map(([key, value]) => [key, revive(value)]));
}

// A value as the schema reads it, with all loaded references; a cycle ends with an id.
function plain(value, above = []) {
  if (value instanceof Date) return { $date: value.toISOString() };
  if (value === undefined || value === null || typeof value !== "object") return value;
  const id = value.$jazz?.id;
  if (id && (!value.$isLoaded || above.includes(id))) return { id };
  if (value.getChunks) return { ...value.getChunks(), chunks: undefined, text: Buffer.concat(value.getChunks().chunks).toString() };
  if (value.$jazz?.raw.type === "coplaintext") return value.toString();
  const below = (child) => plain(child, [...above, id]);
  if (value.perAccount) return Object.values(value.perAccount).map((entry) => below(entry.value));
  if (Array.isArray(value)) return [...value].map(below);
  const fields = Object.keys(value).filter((key) => !key.startsWith("$"));
  return Object.fromEntries(fields.map((key) => [key, below(value[key])]));
}

function pick(value, [key, ...rest]) {
  if (key === undefined) return value;
  return key === "*" ? value.map((item) => pick(item, rest)) : pick(value[key], rest);
}

async function group(actor, id) {
  return loaded(await Group.load(id, as(actor)), `group ${id}`);
}

async function load(actor, schema, id, resolve) {
  return loaded(await schemas[schema].load(id, { ...as(actor), resolve }), `${schema} ${id}`);
}

serve({
  async login({ actor, url, accountID, accountSecret }) {
    const started = await startWorker({ accountID, accountSecret, syncServer: url, WebSocket });
    workers.set(actor, started);
    return { id: started.worker.$jazz.id };
  },
  async create({ actor, schema, value, owner }) {
    return schemas[schema].create(revive(value), { owner: await group(actor, owner) }).$jazz.id;
  },
  read: async ({ actor, schema, id, resolve }) => plain(await load(actor, schema, id, resolve)),
  async file({ actor, owner, text, name }) {
    const made = co.fileStream().create({ owner: await group(actor, owner) });
    made.start({ mimeType: "text/plain", fileName: name, totalSizeBytes: text.length });
    made.push(new TextEncoder().encode(text));
    made.end();
    return made.$jazz.id;
  },
  async set({ actor, schema, id, key, value, resolve }) {
    (await load(actor, schema, id, resolve)).$jazz.set(key, revive(value));
  },
  async push({ actor, schema, id, path, value, resolve }) {
    const target = path.reduce((at, key) => at[key], await load(actor, schema, id, resolve));
    target.$jazz.push(revive(value));
  },
  async unique({ actor, schema, owner, unique, value, resolve }) {
    const options = { unique, owner: await group(actor, owner), resolve };
    const made = await schemas[schema].getOrCreateUnique({ ...options, value: revive(value) });
    return loaded(made, "the unique value").$jazz.id;
  },
  async loadUnique({ actor, schema, owner, unique, resolve }) {
    const value = await schemas[schema].loadUnique(unique, owner, { ...as(actor), resolve });
    return value.$isLoaded ? plain(value) : null;
  },
  // Waits until a value, or what a path in it selects, is as expected when the schema reads it.
  async until({ actor, schema, id, resolve, select = [], expected }) {
    const wanted = JSON.stringify(expected);
    let last;
    await new Promise((resolvePromise, reject) => {
      const deadline = setTimeout(() => reject(new Error(`still ${last}, expected ${wanted}`)), UNTIL_MS);
      schemas[schema].subscribe(id, { ...as(actor), resolve }, (value, unsubscribe) => {
        last = JSON.stringify(pick(plain(value), select));
        if (last !== wanted) return;
        clearTimeout(deadline);
        unsubscribe();
        resolvePromise();
      });
    });
  },
  // The content on the wire: the changes of each valid transaction, and the owner.
  async wire({ actor, id }) {
    const value = await workers.get(actor).worker.$jazz.localNode.load(id);
    if (value === "unavailable") throw new Error(`unavailable: ${id}`);
    value.toJSON();
    const { header } = value.core.verified;
    const transactions = value.core.getValidSortedTransactions({ ignorePrivateTransactions: false });
    return {
      header,
      changes: transactions.map((transaction) => transaction.changes),
      meta: transactions.map((transaction) => transaction.meta ?? null),
    };
  },
  // Ends all actors.
  async forget() {
    for (const { worker } of workers.values()) await worker.$jazz.localNode.gracefulShutdown();
    workers.clear();
  },
  async flush({ actor }) {
    await workers.get(actor).worker.$jazz.waitForAllCoValuesSync({ timeout: 20_000 });
  },
});
