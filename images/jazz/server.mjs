// The Jazz sync server of a ReSide cluster: the official cojson package, SQLite through node:sqlite, one HTTP port.
//
//   HOST  address to listen on (default 127.0.0.1)
//   PORT  port (default 4200; 0: any free one, which the "listening" log line contains)
//   DB    SQLite file (default jazz.sqlite in the working folder); ":memory:" stores nothing
//
// GET /healthz answers 200 while the server takes connections and its database answers a query, 503 otherwise.
// SIGTERM and SIGINT shut it down gracefully: no new connections, sockets closed, storage drained, database closed.
import { createServer } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { randomUUID } from "node:crypto";
import { LocalNode, getSqliteStorage } from "cojson";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import { createWebSocketPeer } from "cojson-transport-ws";
import { WebSocketServer } from "ws";
import { Dependencies } from "./dependencies.mjs";
import { MessageCheck } from "./shape.mjs";

const HOST = process.env.HOST ?? "127.0.0.1";
const PORT = Number(process.env.PORT ?? "4200");
const DB = process.env.DB ?? "jazz.sqlite";
const PING_MS = 1500;
const GRACE_MS = 5000;

if (!Number.isInteger(PORT) || PORT < 0 || PORT > 65535) {
  log("error", "PORT is not a port number", { port: process.env.PORT });
  process.exit(2);
}

function log(level, message, fields = {}) {
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...fields })}\n`);
}

// cojson and its transport write to the console; each message becomes one JSON line.
for (const [method, level] of [["log", "info"], ["info", "info"], ["debug", "debug"], ["warn", "warning"], ["error", "error"]]) {
  console[method] = (...parts) => log(level, parts.map(asText).join(" "));
}

// node:sqlite warns that it is experimental.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  if (warning.name !== "ExperimentalWarning") log("warning", String(warning));
});

function asText(part) {
  if (typeof part === "string") return part;
  if (part instanceof Error) return part.stack ?? part.message;
  if (part?.err instanceof Error) return part.err.message;
  try {
    return JSON.stringify(part);
  } catch {
    return String(part);
  }
}

function openDatabase(file) {
  const db = new DatabaseSync(file);
  // WAL with NORMAL survives a crash of the process; a power failure may lose the latest commits, which clients send again.
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000;");
  const statements = new Map();
  const prepare = (sql) => {
    let statement = statements.get(sql);
    if (!statement) {
      statement = db.prepare(sql);
      statements.set(sql, statement);
    }
    return statement;
  };
  let depth = 0;
  return {
    run: (sql, params) => void prepare(sql).run(...params),
    query: (sql, params) => prepare(sql).all(...params),
    get: (sql, params) => prepare(sql).get(...params),
    transaction(callback) {
      if (depth > 0) return callback();
      db.exec("BEGIN");
      depth += 1;
      try {
        const result = callback();
        db.exec("COMMIT");
        return result;
      } catch (error) {
        db.exec("ROLLBACK");
        throw error;
      } finally {
        depth -= 1;
      }
    },
    closeDb: () => db.close(),
    getMigrationVersion: () => Number(db.prepare("PRAGMA user_version").get().user_version),
    saveMigrationVersion: (version) => db.exec(`PRAGMA user_version = ${Number(version)}`),
  };
}

// cojson replies to a message before it stores the content; it does both synchronously. Delay the reply until the content
// is stored: an acknowledgement then means that the content is in the database, even if the process is killed.
function sendAfterStoring(websocket) {
  const send = websocket.send.bind(websocket);
  let held = [];
  websocket.send = (data) => {
    held.push(data);
    if (held.length > 1) return;
    queueMicrotask(() => {
      const ready = held;
      held = [];
      for (const item of ready) if (websocket.readyState === websocket.OPEN) send(item);
    });
  };
}

// The transport throws on a frame such as `5`, which is JSON and no message: that ends its connection, not the server.
function guarded(websocket, id) {
  const addEventListener = websocket.addEventListener.bind(websocket);
  websocket.addEventListener = (type, listener, options) =>
    addEventListener(type, type !== "message" ? listener : (event) => {
      try {
        listener(event);
      } catch (error) {
        log("warning", "a frame could not be processed", { peer: id, error: String(error) });
        websocket.close(1002, "a frame could not be processed");
      }
    }, options);
  return websocket;
}

const crypto = await NapiCrypto.create();
const check = new MessageCheck(crypto);

// Passes on to cojson only what has the shape of a message.
function admitOnly(peer) {
  const push = peer.incoming.push.bind(peer.incoming);
  const refuse = (reason, fields) => void log("warning", "refused", { peer: peer.id, reason, ...fields });
  peer.incoming.push = (message) => {
    const checked = message === "Disconnected" ? message : check.admitted(message, refuse);
    if (checked) push(checked);
  };
}

const secret = crypto.newRandomAgentSecret();
const node = new LocalNode(secret, crypto.newRandomSessionID(crypto.getAgentID(secret)), crypto);
const database = openDatabase(DB);
node.setStorage(getSqliteStorage(database));
new Dependencies(node, (peer, reason, fields) => log("warning", "refused", { peer, reason, ...fields }));

let stopping = false;

const server = createServer((request, response) => {
  if (request.url !== "/healthz") {
    response.writeHead(404, { "content-type": "text/plain" }).end("not found\n");
    return;
  }
  let healthy = !stopping;
  try {
    database.get("SELECT 1 AS one", []);
  } catch (error) {
    healthy = false;
    log("error", "the database does not answer", { error: String(error) });
  }
  response.writeHead(healthy ? 200 : 503, { "content-type": "text/plain" }).end(healthy ? "ok\n" : "unhealthy\n");
});

const sockets = new WebSocketServer({ server, perMessageDeflate: false, maxPayload: 256 * 1024 * 1024 });

sockets.on("connection", (websocket, request) => {
  // Each connection has a random peer id, because ids made of address and time are not unique.
  const id = `client_${randomUUID()}`;
  sendAfterStoring(websocket);
  websocket.on("error", (error) => log("warning", "a connection failed", { peer: id, error: String(error) }));
  const pings = setInterval(() => {
    if (websocket.readyState === websocket.OPEN) {
      websocket.send(JSON.stringify({ type: "ping", time: Date.now(), dc: "unknown" }));
    }
  }, PING_MS);
  websocket.on("close", () => {
    clearInterval(pings);
    log("info", "disconnected", { peer: id });
  });
  const peer = createWebSocketPeer({
    id,
    role: "client",
    websocket: guarded(websocket, id),
    expectPings: false,
    batchingByDefault: false,
    deletePeerStateOnClose: true,
  });
  admitOnly(peer);
  node.syncManager.addPeer(peer);
  log("info", "connected", { peer: id, address: request.socket.remoteAddress });
});

// ws forwards the errors of its HTTP server.
sockets.on("error", (error) => {
  log("error", "can't listen", { host: HOST, port: PORT, error: String(error) });
  process.exit(1);
});

server.listen(PORT, HOST, () => {
  log("info", "listening", { host: HOST, port: server.address().port, db: DB });
});

async function stop(signal) {
  if (stopping) return;
  stopping = true;
  log("info", "stopping", { signal });
  server.close();
  for (const websocket of sockets.clients) websocket.close(1001, "the server stops");
  const force = setTimeout(() => {
    for (const websocket of sockets.clients) websocket.terminate();
  }, GRACE_MS / 2);
  const deadline = setTimeout(() => {
    log("error", "did not stop in time", { ms: GRACE_MS });
    process.exit(1);
  }, GRACE_MS);
  await node.gracefulShutdown();
  clearTimeout(force);
  for (const websocket of sockets.clients) websocket.terminate();
  database.closeDb();
  clearTimeout(deadline);
  log("info", "stopped");
  process.exit(0);
}

process.on("SIGTERM", () => void stop("SIGTERM"));
process.on("SIGINT", () => void stop("SIGINT"));
