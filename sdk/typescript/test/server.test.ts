import assert from "node:assert/strict";
import { test } from "node:test";
import { INSTANCE_HEADER } from "../src/permissions.ts";
import { ReplicaServer } from "../src/server.ts";

test("a result that is not JSON fails its call, not the process", async () => {
  const server = new ReplicaServer("greeter");
  const url = `http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`;
  const handler = (): Promise<unknown> => Promise.resolve({ big: 1n });
  server.open({ account: "co_zReplica", verifier: { verify: () => "co_zCaller" }, find: () => handler });
  const headers = { [INSTANCE_HEADER]: server.instance };
  const failed = await fetch(`${url}/replicas/greeter/rpc/c/m`, { method: "POST", headers });
  assert.equal(failed.status, 500);
  assert.equal(((await failed.json()) as { error: { code: string } }).error.code, "error");
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  await server.drain();
});
