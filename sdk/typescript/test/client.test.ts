import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { callMethod, type Process } from "../src/client.ts";
import { AnswerLost, ResideError } from "../src/errors.ts";
import { INSTANCE_HEADER } from "../src/permissions.ts";
import { accountOf } from "../src/tokens.ts";
import { crypto } from "./vectors.ts";

const LONG = "x".repeat(1 << 20);

async function listen(server: Server): Promise<{ endpoint: string; receiver: string; path: string }> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${port}`, receiver: "co_zReceiver", path: "/replicas/greeter/rpc/c/m" };
}

function newCaller() {
  const agentSecret = crypto.newRandomAgentSecret();
  return { crypto, accountId: "co_zCaller", agentId: crypto.getAgentID(agentSecret), agentSecret, processes: new Map<string, Process>() };
}

test("a receiver that refuses a call before it has read the body is called again", async () => {
  const server = createServer((request, response) => {
    if (request.headers[INSTANCE_HEADER] === "now") {
      request.resume().once("end", () => response.end('"done"'));
      return;
    }
    const refusal = { error: { code: "other-instance", message: "another process" }, instance: "now" };
    response.writeHead(421).end(JSON.stringify(refusal));
  });
  const target = await listen(server);
  const caller = newCaller();
  for (let round = 0; round < 20; round += 1) {
    caller.processes.clear();
    assert.equal(await callMethod(caller, target, { text: LONG }), "done");
  }
  server.close();
  server.closeAllConnections();
});

test("a code that is refused is followed by a signature", async () => {
  const schemes: (string | undefined)[] = [];
  const agentSecret = crypto.newRandomAgentSecret();
  const agent = crypto.getAgentID(agentSecret);
  const server = createServer((request, response) => {
    request.resume();
    schemes.push(request.headers.authorization?.split(" ")[0]);
    const named = { error: { code: "other-instance", message: "another process" }, instance: "old", agent };
    const refused = { error: { code: "unauthenticated", message: "it is malformed" } };
    if (schemes.length === 1) response.writeHead(421).end(JSON.stringify(named));
    else if (schemes.length === 2) response.writeHead(401).end(JSON.stringify(refused));
    else response.end('"done"');
  });
  const target = { ...(await listen(server)), receiver: accountOf(crypto, agent) };
  const caller = newCaller();
  assert.equal(await callMethod(caller, target, {}), "done");
  assert.deepEqual(schemes, ["Jazz-Bound", "Jazz-Shared", "Jazz-Bound"]);
  assert.equal(caller.processes.get(target.receiver)?.key, undefined);
  server.close();
  server.closeAllConnections();
});

test("a receiver that ends without an answer may have handled the call, one that does not listen has not", async () => {
  const server = createServer((request) => request.socket.destroy());
  const target = await listen(server);
  await assert.rejects(callMethod(newCaller(), target, {}), AnswerLost);
  server.close();
  server.closeAllConnections();
  const refused = callMethod(newCaller(), target, {}, { withinMs: 200 });
  await assert.rejects(refused, (error) => error instanceof ResideError && !(error instanceof AnswerLost) && error.code === "not-ready");
});
