import assert from "node:assert/strict";
import { test } from "node:test";
import { cojsonInternals, type AgentSecret } from "cojson";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import { sharedKey } from "../src/shared.ts";
import { accountOf, digest, signRequest, TokenRefused, newVerifier } from "../src/tokens.ts";
import { crypto, load } from "./vectors.ts";

interface Vectors {
  accounts: Record<"caller" | "other" | "receiver", { agentSecret: string; agentId: string; accountId: string }>;
  request: { method: string; path: string; body: string; nonce: string; madeAt: number };
  token: { pathHash: string; bodyHash: string; signedText: string; header: string };
  shared: { key: string; text: string; header: string };
  cases: { name: string; header: string | null; beforeHeader?: string; method: string; path: string; body: string; now: number; before: number; result: string }[];
}

const vectors = load<Vectors>("tokens");

test("accounts follow from their secrets", () => {
  for (const { agentSecret, agentId, accountId } of Object.values(vectors.accounts)) {
    assert.equal(crypto.getAgentID(agentSecret as AgentSecret), agentId);
    assert.equal(accountOf(crypto, agentId), accountId);
  }
});

test("a token is signed as the vectors say", async () => {
  const { request, token, accounts } = vectors;
  assert.equal(digest(request.path), token.pathHash);
  assert.equal(digest(request.body), token.bodyHash);
  const fields = token.header.slice("Jazz-Bound ".length).split("~");
  assert.equal(cojsonInternals.stableStringify(["Jazz-Bound", ...fields.slice(1)]), token.signedText);
  for (const provider of [crypto, await NapiCrypto.create()]) {
    const options = { now: request.madeAt, nonce: request.nonce };
    const made = signRequest(provider, accounts.caller, accounts.receiver.accountId, request, options);
    assert.equal(made, token.header);
  }
});

test("a shared token is made as the vectors say, and both accounts compute the same key", async () => {
  const { request, shared, accounts } = vectors;
  const { caller, receiver } = accounts;
  const fields = shared.header.slice("Jazz-Shared ".length).split("~");
  assert.equal(JSON.stringify(["Jazz-Shared", ...fields.slice(1)]), shared.text);
  for (const provider of [crypto, await NapiCrypto.create()]) {
    const key = sharedKey(provider, caller.agentSecret, receiver.agentId)!;
    assert.equal(key.toString("hex"), shared.key);
    assert.deepEqual(sharedKey(provider, receiver.agentSecret, caller.agentId), key);
    const options = { now: request.madeAt, nonce: request.nonce, key };
    assert.equal(signRequest(provider, caller, receiver.accountId, request, options), shared.header);
  }
});

for (const vector of vectors.cases) {
  test(`a token: ${vector.name}: ${vector.result}`, () => {
    const verify = newVerifier(crypto, vectors.accounts.receiver, () => vector.now);
    const given = () => verify(vector.header ?? undefined, vector);
    for (let count = 0; count < vector.before; count += 1) verify(vector.beforeHeader ?? vector.header!, vector);
    if (vector.result === "accepted") assert.equal(given(), vectors.accounts.caller.accountId);
    else assert.throws(given, (error) => error instanceof TokenRefused && error.reason === vector.result);
  });
}

test("a signer that is not on the curve is refused, and does not end the process", () => {
  const [sealer] = vectors.accounts.caller.agentId.split("/");
  const header = vectors.token.header.split("~");
  for (const signer of ["signer_z", "signer_z1", `signer_z${"z".repeat(44)}`, "signer_z0OIl"]) {
    const agent = `${sealer}/${signer}`;
    const fields = header.with(1, accountOf(crypto, agent)).with(3, agent);
    const verify = newVerifier(crypto, vectors.accounts.receiver, () => vectors.request.madeAt);
    assert.throws(() => verify(fields.join("~"), vectors.request), /its signature is not one of the account/);
  }
});

test("an agent that has shared a key, with a signer that is not on the curve, does not end the process", async () => {
  const { receiver, caller } = vectors.accounts;
  const native = await NapiCrypto.create();
  const [sealer] = caller.agentId.split("/");
  for (const signer of ["signer_z", "signer_z1", `signer_z${"z".repeat(44)}`, "signer_z0OIl"]) {
    const agentId = `${sealer}/${signer}`;
    const hostile = { ...caller, agentId, accountId: accountOf(native, agentId) };
    const key = sharedKey(native, caller.agentSecret, receiver.agentId);
    const verify = newVerifier(native, receiver, () => vectors.request.madeAt);
    const sign = (options: object) =>
      signRequest(native, hostile, receiver.accountId, vectors.request, { now: vectors.request.madeAt, ...options });
    assert.equal(verify(sign({ key }), vectors.request), hostile.accountId);
    assert.throws(() => verify(sign({}), vectors.request), /its signature is not one of the account/);
  }
});

test("a verifier remembers at most 1,000 agents, and verifies those that it has forgotten", () => {
  const { receiver } = vectors.accounts;
  const verify = newVerifier(crypto, receiver, () => vectors.request.madeAt);
  const callers = Array.from({ length: 1_005 }, () => {
    const agentSecret = crypto.newRandomAgentSecret();
    const agentId = crypto.getAgentID(agentSecret);
    return { agentSecret, agentId, accountId: accountOf(crypto, agentId) };
  });
  for (const caller of [...callers, callers[0]!, callers[1_004]!]) {
    const header = signRequest(crypto, caller, receiver.accountId, vectors.request, { now: vectors.request.madeAt });
    assert.equal(verify(header, vectors.request), caller.accountId);
    const forged = header.replace(/signature_z[^~]*/, vectors.token.header.slice("Jazz-Bound ".length).split("~")[0]!);
    assert.throws(() => verify(forged, vectors.request), /its signature is not one of the account/);
    const other = header.replace(caller.accountId, vectors.accounts.other.accountId);
    assert.throws(() => verify(other, vectors.request), /its agent is not the agent of its account/);
  }
});

test("a malformed signature of an agent that has signed before is refused, and does not end the process", async () => {
  const { receiver, caller } = vectors.accounts;
  const native = await NapiCrypto.create();
  const verify = newVerifier(native, receiver, () => vectors.request.madeAt);
  const sign = () => signRequest(native, caller, receiver.accountId, vectors.request, { now: vectors.request.madeAt });
  verify(sign(), vectors.request);
  for (const bytes of ["", "1", "1".repeat(64), "z".repeat(88), "2".repeat(500), "0OIl"]) {
    const header = sign().replace(/signature_z[^~]*/, `signature_z${bytes}`);
    assert.throws(() => verify(header, vectors.request), /its signature is not one of the account/);
  }
  assert.equal(verify(sign(), vectors.request), caller.accountId);
});
