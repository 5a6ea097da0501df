import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { callMethod, type Caller } from "../src/client.ts";
import { contract } from "../src/contract.ts";
import { ResideError } from "../src/errors.ts";
import { Held, Locks } from "../src/locks.ts";
import { Histogram } from "../src/metrics.ts";
import { ReplicaServer } from "../src/server.ts";
import { readSettings } from "../src/settings.ts";
import { newVerifier } from "../src/tokens.ts";
import { crypto, load } from "./vectors.ts";

const { accounts } = load<{ accounts: Record<"caller" | "receiver", { agentSecret: string; agentId: string; accountId: string }> }>("tokens");
const { caller } = accounts;
const receiver = accounts.receiver.accountId;
const path = "/replicas/greeter/rpc/registry.example/contracts/greeting.v1/greet";

async function serve(handler: (account: string, body: unknown) => Promise<unknown>) {
  const server = new ReplicaServer("greeter");
  const endpoint = `http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`;
  const verify = newVerifier(crypto, accounts.receiver);
  const find = (contract: string, method: string) =>
    contract === "registry.example/contracts/greeting.v1" && method === "greet" ? handler : undefined;
  const open = () => server.open({ account: receiver, agent: accounts.receiver.agentId, verify, find });
  const from: Caller = { crypto, ...caller, processes: new Map() };
  const call = (body: object, target = path) => callMethod(from, { endpoint, receiver, path: target }, body);
  return { server, endpoint, open, call };
}

test("calls are answered from the end of the start until the end of the calls in progress", async () => {
  let finish: (() => void) | undefined;
  const begun = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let answer: ((value: unknown) => void) | undefined;
  const { server, endpoint, open, call } = await serve(async (account, body) => {
    finish!();
    return [account, body, await new Promise((resolve) => (answer = resolve))];
  });
  assert.equal((await fetch(`${endpoint}/healthz`)).status, 200);
  assert.deepEqual(await (await fetch(`${endpoint}/readyz`)).json(), { ready: false, missing: ["starting"] });
  const called = call({ name: "Ada" }); // refused as not serving, and sent again
  open();
  await begun;
  assert.equal((await fetch(`${endpoint}/readyz`)).status, 200);
  const drained = server.drain();
  answer!("done");
  assert.deepEqual(await called, [caller.accountId, { name: "Ada" }, "done"]);
  await drained;
  await assert.rejects(fetch(`${endpoint}/healthz`));
});

test("unknown methods, other replicas and errors of handlers have their codes", async () => {
  const { server, open, call } = await serve((_, body) => {
    if (JSON.stringify(body) === "{}") throw new Error("the secret is sesame");
    throw new ResideError("conflict", "it has changed");
  });
  open();
  const has = (code: string, text: string) => (error: unknown) =>
    error instanceof ResideError && error.code === code && error.message.includes(text);
  await assert.rejects(call({}, `${path}s`), has("not-found", "no method greets"));
  await assert.rejects(call({}, path.replace("/greeter/", "/other/")), has("not-found", "this is replica greeter"));
  await assert.rejects(call({ a: 1 }), has("conflict", "it has changed"));
  await assert.rejects(call({}), has("error", "failed to handle greet: see its log"));
  await assert.rejects(call({ long: "x".repeat(1 << 20) }), has("invalid-input", "longer than 1048576 bytes"));
  await server.drain();
});

test("a stale fencing revision is refused", async () => {
  const bodies: string[] = [];
  const etcd = createServer((request, response) => {
    void request.toArray().then((chunks) => {
      bodies.push(Buffer.concat(chunks as Buffer[]).toString());
      response.end(JSON.stringify({ header: { revision: "9" }, responses: [{ response_range: {} }] }));
    });
  }).listen(0, "127.0.0.1");
  await once(etcd, "listening");
  const host = `http://127.0.0.1:${(etcd.address() as AddressInfo).port}`;
  const locks = new Locks([host], receiver, "greeter", () => Promise.resolve(undefined));
  const lock = new Held(locks, locks.keyOf("transaction/co_z"), "7", "1", 30, performance.now());
  await assert.rejects(lock.check(), /is lost: another holder has it, or its lease expired/);
  assert.throws(() => lock.checkLease(), /is lost/);
  assert.equal(bodies.length, 1);
  etcd.close();
  etcd.closeAllConnections();
});

test("a lease that was not renewed for half of its time to live is lost", () => {
  const locks = new Locks(["http://etcd"], receiver, "greeter", () => Promise.resolve(undefined));
  const lock = new Held(locks, "key", "7", "1", 30, performance.now() - 15_000);
  assert.throws(() => lock.checkLease(), /not renewed for half of its time to live/);
});

test("the error of an invalid environment names variables and no values", () => {
  const environment = { RESIDE_REPLICA_NAME: "greeter", RESIDE_AGENT_SECRET: "sesame", RESIDE_LISTEN_PORT: "high" };
  assert.throws(() => readSettings(environment), (error: Error) => {
    return /RESIDE_AGENT_SECRET/.test(error.message) && /RESIDE_LISTEN_PORT/.test(error.message) && !/sesame|high/.test(error.message);
  });
});

test("a histogram has cumulative buckets, and changes after it was read", () => {
  const seconds = new Histogram("seconds", "Time.");
  const lines = () => seconds.text().split("\n");
  seconds.observe({ method: 'a"b' }, 0.004);
  assert.ok(lines().includes('seconds_bucket{method="a\\"b",le="0.005"} 1'));
  seconds.observe({ method: 'a"b' }, 0.2);
  seconds.observe({ method: 'a"b' }, 60);
  const buckets = { "0.005": 1, "0.1": 1, "0.25": 2, "10": 2, "+Inf": 3 };
  for (const [le, count] of Object.entries(buckets)) {
    assert.ok(lines().includes(`seconds_bucket{method="a\\"b",le="${le}"} ${count}`), le);
  }
  assert.ok(lines().includes('seconds_count{method="a\\"b"} 3'));
});

test("names of ReSide's own contracts mean those of the cluster's identity repository", (t) => {
  const identityOf = (identity: string) => contract({ identity, methods: {}, permissions: {} }).identity;
  const own = "registry.reside.internal/reside/contracts/greeting.v1";
  assert.equal(identityOf(own), own);
  process.env.RESIDE_IDENTITY_REPOSITORY = "ghcr.io/acme/reside";
  t.after(() => delete process.env.RESIDE_IDENTITY_REPOSITORY);
  assert.equal(identityOf(own), "ghcr.io/acme/reside/contracts/greeting.v1");
  for (const other of ["registry.example/contracts/greeting.v1", "registry.reside.internal/reside-other/a", identityOf(own)]) {
    assert.equal(identityOf(other), other);
  }
});
