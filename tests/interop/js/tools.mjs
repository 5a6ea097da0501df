// Drives the official jazz-tools package for the tests; the protocol is driver.mjs's.
//
// An actor is an account as `startWorker` logs it in; values are named by their ids.
import { generateMnemonic } from "@scure/bip39";
import { wordlist } from "@scure/bip39/wordlists/english";
import { createWebSocketPeer } from "cojson-transport-ws";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import {
  Account,
  Group,
  InboxSender,
  PassphraseAuth,
  authenticateRequest,
  co,
  createInviteLink,
  generateAuthToken,
  parseInviteLink,
  z,
} from "jazz-tools";
import { startWorker } from "jazz-tools/worker";
import { WebSocket } from "ws";
import { serve } from "./serve.mjs";
import { valueOperations } from "./tools_values.mjs";

const workers = new Map();
const Note = co.map({ text: z.string() });
const Me = co
  .account({ profile: co.profile(), root: co.map({ theme: z.string() }) })
  .withMigration((account) => {
    if (!account.$jazz.has("root")) account.$jazz.set("root", { theme: "of JavaScript" });
  });

async function connect(url) {
  const websocket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    websocket.once("open", resolve);
    websocket.once("error", reject);
  });
  return createWebSocketPeer({ id: `server_${Math.random()}`, websocket, role: "server" });
}

// The credentials with which PassphraseAuth logs in.
async function credentialsOf(passphrase) {
  const crypto = await NapiCrypto.create();
  let credentials;
  const authenticate = async (given) => {
    credentials = given;
  };
  await new PassphraseAuth(crypto, authenticate, null, { set: async () => {} }, wordlist).logIn(passphrase);
  return { accountID: credentials.accountID, accountSecret: credentials.accountSecret };
}

serve({
  async login({ actor, url, accountID, accountSecret }) {
    const started = await startWorker({ accountID, accountSecret, syncServer: url, WebSocket });
    workers.set(actor, started);
    return { id: started.worker.$jazz.id };
  },
  // Logs in with a schema whose migration creates a root, and returns the theme in the root.
  async themeOf({ actor, url, accountID, accountSecret }) {
    const started = await startWorker({ AccountSchema: Me, accountID, accountSecret, syncServer: url, WebSocket });
    workers.set(actor, started);
    return (await started.worker.$jazz.ensureLoaded({ resolve: { root: true } })).root.theme;
  },
  // Creates a new account, as `account create` of jazz-run does, or that of a passphrase.
  async create({ url, name, passphrase }) {
    const crypto = await NapiCrypto.create();
    const peers = [await connect(url)];
    const initialAgentSecret = passphrase && (await credentialsOf(passphrase)).accountSecret;
    const account = await Account.create({ creationProps: { name }, initialAgentSecret, peers, crypto });
    await account.$jazz.waitForAllCoValuesSync({ timeout: 20_000 });
    const { agentSecret } = account.$jazz.localNode.getCurrentAgent();
    return { accountID: account.$jazz.id, accountSecret: agentSecret };
  },
  credentialsOf: ({ passphrase }) => credentialsOf(passphrase),
  newPassphrase: () => generateMnemonic(wordlist, 256),
  profile({ actor }) {
    return workers.get(actor).worker.profile.$jazz.raw.toJSON();
  },
  note({ actor, text }) {
    const { worker } = workers.get(actor);
    return Note.create({ text }, Group.create({ owner: worker })).$jazz.id;
  },
  async read({ actor, id }) {
    const note = await Note.load(id, { loadAs: workers.get(actor).worker });
    return note.$isLoaded ? note.text : null;
  },
  async invite({ actor, id, role, base, hint }) {
    const note = await Note.load(id, { loadAs: workers.get(actor).worker });
    return createInviteLink(note, role, { baseURL: base, valueHint: hint });
  },
  async accept({ actor, link }) {
    const { valueID, inviteSecret } = parseInviteLink(link);
    const note = await workers.get(actor).worker.acceptInvite(valueID, inviteSecret, Note);
    return note.text;
  },
  // From now on, responds to each message in the worker's inbox with its text in capitals; "bad" is an error.
  answerInbox({ actor }) {
    const { worker, experimental } = workers.get(actor);
    experimental.inbox.subscribe(Note, async (note, sender) => {
      if (note.text === "bad") throw new Error("that is bad");
      return Note.create({ text: `${note.text.toUpperCase()} from ${sender}` }, note.$jazz.owner);
    });
    void worker;
  },
  async send({ actor, owner, text }) {
    const { worker } = workers.get(actor);
    const sender = await InboxSender.load(owner, worker);
    return sender.sendMessage(Note.create({ text }, Group.create({ owner: worker })));
  },
  // The value of an Authorization header; `at` sets the clock for it.
  token({ actor, at }) {
    const now = Date.now;
    if (at !== undefined) Date.now = () => at;
    try {
      return `Jazz ${generateAuthToken(workers.get(actor).worker)}`;
    } finally {
      Date.now = now;
    }
  },
  async authenticate({ actor, header }) {
    const headers = header ? { Authorization: header } : {};
    const request = new Request("http://127.0.0.1/", { headers });
    const { account, error } = await authenticateRequest(request, { loadAs: workers.get(actor).worker });
    return { account: account?.$jazz.id ?? null, error: error?.message ?? null };
  },
  ...valueOperations((actor) => workers.get(actor).worker),
  // Ends all actors.
  async forget() {
    for (const { worker } of workers.values()) await worker.$jazz.localNode.gracefulShutdown();
    workers.clear();
  },
  async flush({ actor }) {
    await workers.get(actor).worker.$jazz.waitForAllCoValuesSync({ timeout: 20_000 });
  },
});
