import assert from "node:assert/strict";
import { request, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { INSTANCE_HEADER } from "../src/permissions.ts";
import { ReplicaServer, type Handler } from "../src/server.ts";

const PATH = "/replicas/greeter/rpc/c/m";
const TOO_LONG = Buffer.alloc((3 << 20) + 1, 32);

async function serve(handler: Handler, options = {}): Promise<[ReplicaServer, string]> {
  const server = new ReplicaServer("greeter", options);
  const url = `http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`;
  server.open({ account: "co_zReplica", verifier: { verify: () => "co_zCaller" }, find: () => handler });
  return [server, url];
}

async function codeOf(response: Response): Promise<string> {
  return ((await response.json()) as { error: { code: string } }).error.code;
}

test("a result that is not JSON fails its call, not the process", async () => {
  const [server, url] = await serve(() => Promise.resolve({ big: 1n }));
  const failed = await fetch(url + PATH, { method: "POST", headers: { [INSTANCE_HEADER]: server.instance } });
  assert.deepEqual([failed.status, await codeOf(failed)], [500, "error"]);
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  await server.drain();
});

test("a body that is too long is refused with its code, whether its length is announced or not", async () => {
  const [server, url] = await serve(() => Promise.reject(new Error("the handler must not run")));
  const headers = { [INSTANCE_HEADER]: server.instance };
  for (let round = 0; round < 3; round += 1) {
    const announced = await fetch(url + PATH, { method: "POST", headers, body: TOO_LONG });
    assert.deepEqual([announced.status, await codeOf(announced)], [400, "invalid-input"]);
    const stream = new Blob([TOO_LONG]).stream();
    const unannounced = { method: "POST", headers, body: stream, duplex: "half" }; // types of Node 22 lack `duplex`
    const streamed = await fetch(url + PATH, unannounced);
    assert.deepEqual([streamed.status, await codeOf(streamed)], [400, "invalid-input"]);
  }
  await server.drain();
});

test("a body that is too long is refused before its end, and its sender is not read from for ever", async () => {
  const [server, url] = await serve(() => Promise.reject(new Error("the handler must not run")), { discardMs: 50 });
  const sending = request(url + PATH, { method: "POST", headers: { [INSTANCE_HEADER]: server.instance } });
  const closed = new Promise((resolve) => sending.once("error", resolve).once("close", resolve));
  const answered = new Promise<IncomingMessage>((resolve) => sending.once("response", resolve));
  sending.write(TOO_LONG);
  const response = await answered;
  assert.equal(response.statusCode, 400);
  response.on("error", () => undefined).resume();
  await closed;
  await server.drain();
});
