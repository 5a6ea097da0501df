// Drives the official cojson package for the tests: a line of stdin is a JSON request, a line of stdout its response.
//
//   {"id": 1, "op": "set", "args": {...}}  ->  {"id": 1, "result": ...} or {"id": 1, "error": "..."}
//
// An actor is a LocalNode with an account, connected to the sync server; values are named by their ids.
import { LocalNode, cojsonInternals } from "cojson";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import { createWebSocketPeer } from "cojson-transport-ws";
import { WebSocket } from "ws";
import { serve } from "./serve.mjs";
import { plain, valueOperations } from "./values.mjs";
import { programVerbs } from "./verbs.mjs";

const crypto = await NapiCrypto.create();
const actors = new Map();
const UNTIL_MS = 20_000;

async function connect(url) {
  const websocket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    websocket.once("open", resolve);
    websocket.once("error", reject);
  });
  return createWebSocketPeer({ id: `server_${crypto.uniquenessForHeader()}`, websocket, role: "server" });
}

function content(actor, id) {
  return actors.get(actor).node.expectCoValueLoaded(id).getCurrentContent();
}

async function load(actor, id) {
  const value = await actors.get(actor).node.load(id);
  if (value === "unavailable") throw new Error(`unavailable: ${id}`);
  return value;
}

function has(actor, id) {
  const value = actors.get(actor).node.getCoValue(id);
  return value.isAvailable() && value.isCompletelyDownloaded();
}

async function view(actor, id, members, times) {
  const value = await load(actor, id);
  const isGroup = value.core.isGroup();
  const read = isGroup ? roles(value, members, times) : plain(value);
  const verdicts = value.core.verifiedTransactions.map((tx) => [tx.txID.sessionID, tx.txID.txIndex, tx.isValid]);
  return { content: read, verdicts };
}

function roles(group, members, times) {
  const of = (at) => members.map((member) => at.roleOf(member) ?? null);
  return [of(group), ...times.map((time) => of(group.atTime(time)))];
}

async function member(actor, id) {
  return id === "everyone" ? id : load(actor, id);
}

const verbs = programVerbs(actors, load, member);

const operations = {
  async create({ actor, url, name }) {
    const { node, accountID, accountSecret } = await LocalNode.withNewlyCreatedAccount({
      creationProps: { name },
      crypto,
      peers: [await connect(url)],
    });
    actors.set(actor, { node, url });
    return { accountID, accountSecret };
  },
  async login({ actor, url, accountID, accountSecret }) {
    const node = await LocalNode.withLoadedAccount({
      accountID,
      accountSecret,
      sessionID: crypto.newRandomSessionID(accountID),
      crypto,
      peers: [await connect(url)],
    });
    actors.set(actor, { node, url });
    const account = content(actor, accountID);
    const profile = await load(actor, account.get("profile"));
    return { name: profile.get("name") };
  },
  async flush({ actor }) {
    await actors.get(actor).node.syncManager.waitForAllCoValuesSync(UNTIL_MS);
  },
  async load({ actor, id }) {
    return plain(await load(actor, id));
  },
  // The content as JSON text, for content that other JSON parsers can't read.
  textOf: async ({ actor, id }) => JSON.stringify(plain(await load(actor, id))),
  // Waits until the content is as expected or, if a count is given, until that many transactions have arrived.
  async until({ actor, id, expected, count }) {
    const wanted = cojsonInternals.stableStringify(expected ?? null);
    const value = await load(actor, id);
    await new Promise((resolve, reject) => {
      let unsubscribe = () => {};
      const deadline = setTimeout(() => {
        unsubscribe();
        reject(new Error(`still ${JSON.stringify(plain(content(actor, id)))}, expected ${wanted}`));
      }, UNTIL_MS);
      const check = () => {
        const json = plain(content(actor, id));
        const done =
          count === undefined
            ? cojsonInternals.stableStringify(json) === wanted
            : value.core.verifiedTransactions.length >= count;
        if (!done) return;
        clearTimeout(deadline);
        queueMicrotask(() => unsubscribe());
        resolve();
      };
      unsubscribe = value.core.subscribe(check);
      check();
    });
  },
  // Returns the id that the native code computes for a header; null if it refuses the header.
  headerId({ header }) {
    try {
      crypto.createSessionMap("co_z1", JSON.stringify(header), 100_000, false);
    } catch (error) {
      return /expected (co_z\w+)/.exec(error.message)?.[1] ?? null;
    }
    throw new Error("the native code accepts any id");
  },
  group: ({ actor, name }) => actors.get(actor).node.createGroup(undefined, name ? { name } : undefined).id,
  async addMember({ actor, group, account, role }) {
    (await load(actor, group)).addMember(await member(actor, account), role);
  },
  async removeMember({ actor, group, account }) {
    await (await load(actor, group)).removeMember(await member(actor, account));
  },
  async extend({ actor, group, parent, role }) {
    (await load(actor, group)).extend(await load(actor, parent), role);
  },
  async untilRole({ actor, group, account, role }) {
    const value = await load(actor, group);
    await new Promise((resolve, reject) => {
      const deadline = setTimeout(() => reject(new Error(`still ${value.roleOf(account)}, not ${role}`)), UNTIL_MS);
      const unsubscribe = value.subscribe((state) => {
        if ((state.roleOf(account) ?? null) !== role) return;
        clearTimeout(deadline);
        queueMicrotask(() => unsubscribe());
        resolve();
      });
    });
  },
  createInvite: async ({ actor, group, role }) => (await load(actor, group)).createInvite(role),
  acceptInvite: ({ actor, id, secret }) => actors.get(actor).node.acceptInvite(id, secret),
  // Sets the actor's clock to this time.
  clock: ({ actor, at }) => {
    actors.get(actor).node.stampNow = () => at;
    return null;
  },
  // Ends the actor's connections; what it writes in the meantime is sent on the next connection.
  offline: ({ actor }) => {
    const { syncManager } = actors.get(actor).node;
    for (const id of Object.keys(syncManager.peers)) syncManager.removePeer(id);
  },
  online: async ({ actor }) => {
    const { node, url } = actors.get(actor);
    node.syncManager.addPeer(await connect(url));
  },
  leave: async ({ actor }) => {
    await actors.get(actor).node.gracefulShutdown();
    actors.delete(actor);
  },
  // Ends all actors.
  async forget() {
    for (const { node } of actors.values()) await node.gracefulShutdown();
    actors.clear();
  },
  // Whether an actor has a value, with its dependencies.
  has: ({ actor, id }) => has(actor, id),
  // How many transactions of each session actors have, for each value.
  counts: ({ actors: names, ids }) =>
    Object.fromEntries(
      names.map((actor) => [actor, ids.map((id) => actors.get(actor).node.getCoValue(id).knownState().sessions)]),
    ),
  // Sets the clocks of actors to these times.
  clocks: ({ clocks }) => {
    for (const [actor, at] of Object.entries(clocks)) actors.get(actor).node.stampNow = () => at;
  },
  // Carries out an operation on loaded values; a refusal by the library is a result.
  async attempt({ actor, verb, args }) {
    try {
      return { result: (await verbs[verb](actor, args)) ?? null };
    } catch (error) {
      if (error instanceof TypeError || error instanceof RangeError) throw error;
      return { refused: error.message };
    }
  },
  // An actor's view of some values.
  views: async ({ actor, ids, members, times }) => Promise.all(ids.map((id) => view(actor, id, members, times))),
  roleOf: async ({ actor, group, account }) => (await load(actor, group)).roleOf(account) ?? null,
  map: async ({ actor, group, init }) => (await load(actor, group)).createMap(init).id,
  list: async ({ actor, group, init }) => (await load(actor, group)).createList(init).id,
  feed: async ({ actor, group }) => (await load(actor, group)).createStream().id,
  set: async ({ actor, id, key, value }) => void (await load(actor, id)).set(key, value),
  del: async ({ actor, id, key }) => void (await load(actor, id)).delete(key),
  append: async ({ actor, id, value, after }) => void (await load(actor, id)).append(value, after),
  appendItems: async ({ actor, id, values }) => void (await load(actor, id)).appendItems(values),
  prepend: async ({ actor, id, value, before }) => void (await load(actor, id)).prepend(value, before),
  remove: async ({ actor, id, at }) => void (await load(actor, id)).delete(at),
  // An edit at a fraction (0 to 1) of the current length of the list, which others may be editing.
  async edit({ actor, id, kind, part, value }) {
    const list = await load(actor, id);
    const length = list.entries().length;
    if (kind === "remove" && length) list.delete(Math.floor(part * length));
    else if (kind === "prepend") list.prepend(value, Math.floor(part * (length + 1)));
    else if (kind === "append" && length) list.append(value, Math.floor(part * length));
    else list.appendItems([value + "x", value + "y"]);
  },
  push: async ({ actor, id, value }) => void (await load(actor, id)).push(value),
  // A transaction of any content and time, without checks: what a hostile or a slow client may send.
  async transact({ actor, id, changes, privacy, meta, madeAt }) {
    (await load(actor, id)).core.makeTransaction(changes, privacy ?? "private", meta, madeAt);
  },
  async verdicts({ actor, id }) {
    const value = await load(actor, id);
    plain(value);
    return value.core.verifiedTransactions.map((tx) => [tx.txID.sessionID, tx.txID.txIndex, tx.isValid]);
  },
  async messages({ actor, id }) {
    const value = await load(actor, id);
    return value.core.newContentSince(undefined);
  },
  header({ header }) {
    return cojsonInternals.idforHeader(header, crypto);
  },
  stableOf: ({ source }) => cojsonInternals.stableStringify(JSON.parse(source)),
  accountID: ({ secret }) =>
    cojsonInternals.idforHeader(cojsonInternals.accountHeaderForInitialAgentSecret(secret, crypto), crypto),
  // The meaning of each text, in canonical form; null for text that is not JSON.
  parsed: ({ sources }) =>
    sources.map((source) => {
      let value;
      try {
        value = JSON.parse(source);
      } catch {
        return null;
      }
      return cojsonInternals.stableStringify(value);
    }),
  // What the crypto provider computes from a value, a text, and keys.
  made: ({ value, text, secret, to, key, material }) => {
    const [sealer, signer] = secret.split("/");
    return {
      secureHash: crypto.secureHash(value),
      shortHash: crypto.shortHash(value),
      encrypted: crypto.encrypt(value, key, material),
      signature: crypto.sign(signer, text),
      sealed: crypto.seal({ message: key, from: sealer, to, nOnceMaterial: material }),
    };
  },
  // Any function of the crypto provider, with JSON arguments.
  crypto: ({ name, args }) => crypto[name](...args) ?? null,
  ...valueOperations(load),
};

serve(operations);
