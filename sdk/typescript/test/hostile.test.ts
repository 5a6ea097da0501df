// What strangers and hostile peers may send: it costs one answer, never the process.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { test } from "node:test";
import type { CryptoProvider } from "cojson";
import { Bodies } from "../src/bodies.ts";
import { callMethod, type Process } from "../src/client.ts";
import type { Context } from "../src/context.ts";
import { fromWire, type ResideError } from "../src/errors.ts";
import { PermissionLoop } from "../src/grants.ts";
import type { Entry } from "../src/permissions.ts";
import { INSTANCE_HEADER } from "../src/permissions.ts";
import { ReplicaServer } from "../src/server.ts";

async function serve(listener: RequestListener): Promise<{ server: Server; url: string }> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function open(options?: { requestMs?: number; bodies?: Bodies }): Promise<{ server: ReplicaServer; port: number }> {
  const server = new ReplicaServer("greeter", options);
  const port = await server.listen("127.0.0.1", 0);
  const verify = () => "co_zCaller";
  server.open({ account: "co_zReplica", agent: "", verify, find: () => (_account, body) => Promise.resolve(body) });
  return { server, port };
}

const head = (server: ReplicaServer, length: number): string =>
  `POST /replicas/greeter/rpc/c/m HTTP/1.1\r\nhost: x\r\n${INSTANCE_HEADER}: ${server.instance}\r\ncontent-length: ${length}\r\n\r\n`;

/** Send bytes over a connection, and return all that is answered until it ends or pauses. */
async function exchange(port: number, ...parts: (string | Buffer)[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (data: Buffer) => (answer += data.toString())).on("error", () => undefined);
  for (const part of parts) socket.write(part);
  const ended = once(socket, "close");
  while (!answer.includes("\r\n\r\n") && !socket.destroyed) await Promise.race([once(socket, "data"), ended]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  return answer;
}

const logged = async (work: () => Promise<unknown>): Promise<string> => {
  const write = process.stdout.write.bind(process.stdout);
  let lines = "";
  process.stdout.write = ((text: string | Uint8Array) => {
    if (typeof text !== "string" || !text.startsWith("{")) return write(text); // of the test runner
    lines += text;
    return true;
  });
  try {
    await work();
  } finally {
    process.stdout.write = write;
  }
  return lines;
};

const crypto = { getAgentID: () => "sealer_z/signer_z", getAgentSignerSecret: () => "", sign: () => "signature_z" };
const caller = () => ({ crypto: crypto as unknown as CryptoProvider, accountId: "co_zA", agentId: "", agentSecret: "", processes: new Map<string, Process>() });
const call = (endpoint: string) => callMethod(caller(), { endpoint, receiver: "co_zB", path: "/p" }, {}, { withinMs: 0 });

test("a body that is too long is refused with an answer, announced or not", async () => {
  const { server, port } = await open();
  const long = Buffer.alloc((1 << 20) + 1, 32);
  assert.match(await exchange(port, head(server, long.length), long), /^HTTP\/1.1 400[^]*the body is longer than/);
  assert.match(await exchange(port, head(server, 2 ** 40), "{"), /^HTTP\/1.1 400[^]*the body is longer than/);
  await server.drain();
});

test("a caller that leaves in the middle of its body costs no line of the log", async () => {
  const { server, port } = await open();
  const lines = await logged(async () => {
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(head(server, 100) + "{");
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.destroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal((await fetch(`http://127.0.0.1:${port}/readyz`)).status, 200);
  });
  assert.equal(lines, "");
  await server.drain();
});

test("a request that does not arrive in time ends", async () => {
  const { server, port } = await open({ requestMs: 200 });
  assert.match(await exchange(port, head(server, 100), "{"), /^HTTP\/1.1 408/);
  await server.drain();
});

test("bodies that do not end make room for one that does, and are freed", async () => {
  const { server, port } = await open({ bodies: new Bodies(10) });
  const [first, second] = [exchange(port, head(server, 100), "abcde"), exchange(port, head(server, 100), "abcde")];
  await new Promise((resolve) => setTimeout(resolve, 50));
  for (let tried = 0; tried < 3; tried += 1) {
    assert.match(await exchange(port, head(server, 7), '{"a":1}'), /^HTTP\/1.1 200/);
  }
  for (const each of [first, second]) assert.match(await each, /^HTTP\/1.1 503[^]*too many calls arrive at once/);
  await server.drain();
});

test("members named like those of every object are members only", async () => {
  const { server, port } = await open();
  const body = '{"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}';
  assert.match(await exchange(port, head(server, body.length), body), /^HTTP\/1.1 200[^]*polluted/);
  assert.equal(({} as { polluted?: number }).polluted, undefined);
  assert.equal(fromWire("toString", "x").code, "error");
  assert.equal(fromWire("__proto__", "x").code, "error");
  await server.drain();
});

test("a call follows no redirect, which could lead to any address", async () => {
  let reached = false;
  const target = await serve((_, response) => ((reached = true), response.end("{}")));
  const peer = await serve((_, response) => response.writeHead(307, { location: target.url }).end());
  await assert.rejects(call(peer.url), (error: ResideError) => error.message.startsWith("HTTP 307 without"));
  assert.equal(reached, false);
  for (const { server } of [target, peer]) server.close();
});

test("an answer without end is not read to its end", async () => {
  let sent = 0;
  const chunk = Buffer.alloc(1 << 20, 32);
  const peer = await serve((_, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(chunk)) sent += 1;
    };
    response.on("drain", more);
    more();
  });
  await assert.rejects(call(peer.url), (error: ResideError) => /the answer is longer than/.test(error.message));
  assert.ok(sent < 100, `${sent} MiB were sent`);
  peer.server.closeAllConnections();
  peer.server.close();
});

test("an entry that can't be compared fails the pass of its grantee, not the process", async () => {
  const ref = { account: "co_zA", contract: "c", permission: "p" };
  const bad: Entry = { ref, current: undefined, get expected(): never { throw new RangeError("too deep"); } };
  const block = { refresh: () => Promise.resolve(true), entries: () => [bad], onChange: () => () => undefined };
  const context = { name: "greeter", block } as unknown as Context;
  const loop = new PermissionLoop(context, () => ({}));
  const lines = await logged(async () => {
    loop.start();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await loop.stop();
  });
  assert.match(lines, /too deep/);
});
