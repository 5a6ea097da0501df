// The JavaScript side of benchmarks/jazz.py, with the official cojson package (N-API crypto): the same operations as
// jazz_peer.py.
//
// Each line of stdin is a JSON request, each line of stdout is the JSON response to one. Times are seconds of the
// monotonic clock, which all processes of a machine share.
import { execFile } from "node:child_process";
import { createInterface } from "node:readline";
import { inspect, promisify } from "node:util";
import { LocalNode } from "cojson";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import { createWebSocketPeer } from "cojson-transport-ws";
import { WebSocket } from "ws";

for (const method of ["log", "info", "debug", "warn", "error"]) {
  console[method] = (...parts) => process.stderr.write(`${inspect(parts)}\n`);
}

const crypto = await NapiCrypto.create();
const FLUSH_MS = 60_000;
const MIB = 1 << 20;
const CHUNK = 102_400;
const clock = () => Number(process.hrtime.bigint()) / 1e9;
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

let url;
let credentials;
let node;
let echoed = [];

async function connect() {
  const websocket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    websocket.once("open", resolve);
    websocket.once("error", reject);
  });
  return createWebSocketPeer({ id: `server_${crypto.uniquenessForHeader()}`, websocket, role: "server" });
}

const flush = () => node.syncManager.waitForAllCoValuesSync(FLUSH_MS);

async function load(id) {
  const value = await node.load(id);
  if (value === "unavailable") throw new Error(`unavailable: ${id}`);
  return value;
}

function check(actual, expected) {
  if (actual !== expected) throw new Error(`expected ${expected}, found ${actual}`);
}

const content = (value) => value.core.getCurrentContent();

// Wait until a condition holds for a value's content.
function until(value, condition) {
  return new Promise((resolve) => {
    let done = false;
    let stop = () => {};
    const look = () => {
      if (done || !condition(content(value))) return;
      done = true;
      queueMicrotask(() => stop());
      resolve();
    };
    stop = value.core.subscribe(look, false);
    look();
  });
}

// Measures the longest time in seconds for which the event loop runs nothing else.
class Heartbeat {
  #held = 0;
  #last = clock();
  #timer = setInterval(() => this.#beat(), 1);

  #beat() {
    const now = clock();
    this.#held = Math.max(this.#held, now - this.#last);
    this.#last = now;
  }

  stop() {
    this.#beat();
    clearInterval(this.#timer);
    return this.#held;
  }
}

function newMap(everyone) {
  const group = node.createGroup();
  if (everyone) group.addMember("everyone", everyone);
  return group.createMap();
}

const operations = {
  async register(args) {
    url = args.url;
    const { node: first, accountID, accountSecret } = await LocalNode.withNewlyCreatedAccount({
      creationProps: { name: "bench" },
      crypto,
      peers: [await connect()],
    });
    credentials = { accountID, accountSecret };
    node = first;
    await flush();
  },
  // Replace the node by a new one with nothing in memory, connected and logged in.
  async fresh() {
    await node.gracefulShutdown();
    node = await LocalNode.withLoadedAccount({
      ...credentials,
      sessionID: crypto.newRandomSessionID(credentials.accountID),
      crypto,
      peers: [await connect()],
    });
    await load(node.expectCoValueLoaded(credentials.accountID).getCurrentContent().get("profile"));
  },
  async share() {
    const map = newMap("writer");
    map.set("made", true);
    await flush();
    return map.id;
  },
  async fill({ count }) {
    const map = newMap("reader");
    for (let i = 0; i < count; i++) {
      map.set(`key${i}`, `value ${i}`);
      if (i % 50 === 0) await nextTurn();
    }
    await flush();
    return map.id;
  },
  async write({ count, privacy, turns }) {
    const map = newMap();
    await flush();
    const began = clock();
    for (let i = 0; i < count; i++) {
      map.set(`key${i % 100}`, `value ${i}`, privacy);
      if (turns) await nextTurn();
    }
    check(map.get(`key${(count - 1) % 100}`), `value ${count - 1}`);
    await nextTurn();
    const took = clock() - began;
    await flush();
    return took;
  },
  async create_groups({ count }) {
    const began = clock();
    for (let i = 0; i < count; i++) node.createGroup();
    await nextTurn();
    const took = clock() - began;
    await flush();
    return took;
  },
  async create_maps({ count, upload }) {
    const group = node.createGroup();
    group.addMember("everyone", "reader");
    await flush();
    const began = clock();
    const ids = [];
    for (let i = 0; i < count; i++) ids.push(group.createMap({ number: i, text: `value ${i}` }).id);
    if (!upload) await nextTurn();
    else await flush();
    const took = clock() - began;
    await flush();
    return { took, ids };
  },
  async load_maps({ ids }) {
    const began = clock();
    const maps = await Promise.all(ids.map(load));
    maps.forEach((map, i) => check(map.get("number"), i));
    return clock() - began;
  },
  async load_whole({ id, count }) {
    const began = clock();
    const map = await load(id);
    await until(map, (now) => now.get(`key${count - 1}`) !== undefined);
    check(Object.keys(content(map).toJSON()).length, count);
    return clock() - began;
  },
  async load({ id }) {
    await load(id);
  },
  async until_key({ id, key }) {
    await until(await load(id), (now) => now.get(key) !== undefined);
    return clock();
  },
  async stream({ id, count }) {
    const map = await load(id);
    const began = clock();
    for (let i = 0; i < count; i++) {
      map.set(`key${i}`, `value ${i}`);
      await nextTurn();
    }
    await flush();
    return began;
  },
  // Respond to every "ping" with a "pong", and record the latency of each ping.
  async echo({ id }) {
    const map = await load(id);
    let last = 0;
    echoed = [];
    map.core.subscribe(() => {
      const ping = content(map).get("ping");
      if (!ping || ping.number === last) return;
      echoed.push(clock() - ping.at);
      last = ping.number;
      content(map).set("pong", { number: last, at: clock() });
    });
  },
  async ping({ id, count }) {
    const map = await load(id);
    const delays = [];
    for (let number = 1; number <= count; number++) {
      map.set("ping", { number, at: clock() });
      await until(map, (now) => {
        const pong = now.get("pong");
        if (pong?.number !== number) return false;
        delays.push(clock() - pong.at);
        return true;
      });
    }
    return delays;
  },
  echoed: () => echoed,
  // Return how long a new process takes to import what a client needs, in seconds.
  async import_time() {
    const names = ["cojson", "cojson/crypto/NapiCrypto", "cojson-transport-ws"];
    const imports = names.map((name) => `await import("${name}");`).join("");
    const program = `const began = performance.now(); ${imports} process.stdout.write(String(performance.now() - began));`;
    const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program]);
    return Number(stdout) / 1000;
  },
  async write_file({ mib }) {
    const group = node.createGroup();
    group.addMember("everyone", "reader");
    await flush();
    const beat = new Heartbeat();
    const began = clock();
    const stream = group.createBinaryStream();
    stream.startBinaryStream({ mimeType: "application/octet-stream", totalSizeBytes: mib * MIB });
    const data = new Uint8Array(CHUNK).fill(7);
    for (let left = mib * MIB; left > 0; left -= CHUNK) {
      stream.pushBinaryStreamChunk(data.subarray(0, Math.min(left, CHUNK)));
      await nextTurn();
    }
    stream.endBinaryStream();
    await flush();
    return { took: clock() - began, held: beat.stop(), id: stream.id };
  },
  async read_file({ id, mib }) {
    const beat = new Heartbeat();
    const began = clock();
    const stream = await load(id);
    await until(stream, (now) => now.isBinaryStreamEnded());
    const { chunks } = content(stream).getBinaryChunks();
    check(chunks.reduce((size, chunk) => size + chunk.length, 0), mib * MIB);
    return { took: clock() - began, held: beat.stop() };
  },
  // Return the resident size of this process in bytes, after a collection of garbage.
  memory() {
    globalThis.gc();
    return process.memoryUsage.rss();
  },
};

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { op, args } = JSON.parse(line);
  let answer;
  const before = process.cpuUsage();
  try {
    const result = (await operations[op](args)) ?? null;
    const { user, system } = process.cpuUsage(before);
    answer = { result, cpu: (user + system) / 1e6 };
  } catch (error) {
    answer = { error: error?.stack ?? String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}).on("close", () => process.exit(0));
