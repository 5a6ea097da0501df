import assert from "node:assert/strict";
import { request, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { INSTANCE_HEADER } from "../src/permissions.ts";
import { ReplicaServer, type Handler } from "../src/server.ts";
import { siteFiles } from "../src/site.ts";

const PATH = "/replicas/greeter/rpc/c/m";
const TOO_LONG = Buffer.alloc((3 << 20) + 1, 32);

async function serve(handler: Handler, options = {}): Promise<[ReplicaServer, string]> {
  const server = new ReplicaServer("greeter", options);
  const url = `http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`;
  server.open({ account: "co_zReplica", agent: "", verify: () => "co_zCaller", find: () => handler });
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

test("a site has the declared files only, for GET only, and a policy for its scripts", async () => {
  const server = new ReplicaServer("console");
  const url = `http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`;
  const files = { "": { type: "text/html", body: "<p>hi" }, "page.js": { type: "text/javascript", body: "1" } };
  server.site = siteFiles("console", { files, connect: ["wss://cluster.example.com"] });
  const get = (path: string, options: RequestInit = {}) => fetch(url + path, { redirect: "manual", ...options });
  const page = await get("/replicas/console/?query");
  assert.equal(await page.text(), "<p>hi");
  assert.equal(page.headers.get("content-type"), "text/html");
  assert.equal(page.headers.get("x-content-type-options"), "nosniff");
  const policy = page.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /connect-src 'self' data: wss:\/\/cluster\.example\.com;/);
  assert.match(policy, /frame-ancestors 'none'/);
  const again = await get("/replicas/console/page.js", { headers: { "if-none-match": '"other"' } });
  assert.equal(again.status, 200);
  const etag = again.headers.get("etag")!;
  assert.equal((await get("/replicas/console/page.js", { headers: { "if-none-match": etag } })).status, 304);
  const bare = await get("/replicas/console");
  assert.deepEqual([bare.status, bare.headers.get("location")], [308, "/replicas/console/"]);
  assert.equal((await get("/replicas/console/page.js", { method: "POST" })).status, 405);
  const outside = ["/replicas/console/%2e%2e/package.json", "/replicas/console//page.js", "/replicas/console/page%2ejs"];
  for (const path of [...outside, "/replicas/console/constructor", "/replicas/other/", "/page.js"]) {
    assert.equal((await get(path)).status, 404, path);
  }
  await server.drain();
});

test("a site whose names or origins would change the meaning of its answers is refused", () => {
  const file = { type: "text/plain", body: "" };
  for (const name of ["rpc/x", "account", "../a.js", "A.js"]) {
    assert.throws(() => siteFiles("console", { files: { [name]: file } }), name);
  }
  for (const origin of ["*", "wss://a; script-src *", "wss://a b", "wss://a\r\nx: y"]) {
    assert.throws(() => siteFiles("console", { files: {}, connect: [origin] }), origin);
  }
});

test("the path that a token is for is the decoded one, as in Python", async () => {
  const server = new ReplicaServer("greeter");
  const url = `http://127.0.0.1:${await server.listen("127.0.0.1", 0)}`;
  const verified: string[] = [];
  const verify = (_header: string | undefined, { path }: { path: string }) => (verified.push(path), "co_zCaller");
  const find = (contract: string, method: string) => () => Promise.resolve([contract, method]);
  server.open({ account: "co_zReplica", agent: "", verify, find });
  const headers = { [INSTANCE_HEADER]: server.instance };
  const answer = await fetch(`${url}/replicas/greeter/rpc/a/b/say%20it?x`, { method: "POST", headers });
  assert.deepEqual(await answer.json(), ["a/b", "say it"]);
  assert.deepEqual(verified, [`/replicas/greeter/rpc/a/b/say it#${server.instance}`]);
  await server.drain();
});
