import assert from "node:assert/strict";
import { test } from "node:test";
import { cojsonInternals, type AgentSecret } from "cojson";
import { NapiCrypto } from "cojson/crypto/NapiCrypto";
import { accountOf, digest, signRequest, TokenRefused, TokenVerifier } from "../src/tokens.ts";
import { crypto, load } from "./vectors.ts";

interface Vectors {
  accounts: Record<"caller" | "other" | "receiver", { agentSecret: string; agentId: string; accountId: string }>;
  request: { method: string; path: string; body: string; nonce: string; madeAt: number };
  token: { pathHash: string; bodyHash: string; signedText: string; header: string };
  cases: { name: string; header: string | null; method: string; path: string; body: string; now: number; before: number; result: string }[];
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

for (const vector of vectors.cases) {
  test(`a token: ${vector.name}: ${vector.result}`, () => {
    const verifier = new TokenVerifier(crypto, vectors.accounts.receiver.accountId, () => vector.now);
    const verify = () => verifier.verify(vector.header ?? undefined, vector);
    for (let count = 0; count < vector.before; count += 1) verify();
    if (vector.result === "accepted") assert.equal(verify(), vectors.accounts.caller.accountId);
    else assert.throws(verify, (error) => error instanceof TokenRefused && error.reason === vector.result);
  });
}

test("a signer that is not on the curve is refused, and does not end the process", () => {
  const [sealer] = vectors.accounts.caller.agentId.split("/");
  const header = vectors.token.header.split("~");
  for (const signer of ["signer_z", "signer_z1", `signer_z${"z".repeat(44)}`, "signer_z0OIl"]) {
    const agent = `${sealer}/${signer}`;
    const fields = header.with(1, accountOf(crypto, agent)).with(3, agent);
    const verifier = new TokenVerifier(crypto, vectors.accounts.receiver.accountId, () => vectors.request.madeAt);
    assert.throws(() => verifier.verify(fields.join("~"), vectors.request), /its signature is not one of the account/);
  }
});

test("a verifier remembers at most 1,000 agents, and verifies those that it has forgotten", () => {
  const { receiver } = vectors.accounts;
  const verifier = new TokenVerifier(crypto, receiver.accountId, () => vectors.request.madeAt);
  const callers = Array.from({ length: 1_005 }, () => {
    const agentSecret = crypto.newRandomAgentSecret();
    return { agentSecret, accountId: accountOf(crypto, crypto.getAgentID(agentSecret)) };
  });
  for (const caller of [...callers, callers[0]!, callers[1_004]!]) {
    const header = signRequest(crypto, caller, receiver.accountId, vectors.request, { now: vectors.request.madeAt });
    assert.equal(verifier.verify(header, vectors.request), caller.accountId);
    const forged = header.replace(/signature_z[^~]*/, vectors.token.header.slice("Jazz-Bound ".length).split("~")[0]!);
    assert.throws(() => verifier.verify(forged, vectors.request), /its signature is not one of the account/);
    const other = header.replace(caller.accountId, vectors.accounts.other.accountId);
    assert.throws(() => verifier.verify(other, vectors.request), /its agent is not the agent of its account/);
  }
});

test("a malformed signature of an agent that has signed before is refused, and does not end the process", async () => {
  const { receiver, caller } = vectors.accounts;
  const native = await NapiCrypto.create();
  const verifier = new TokenVerifier(native, receiver.accountId, () => vectors.request.madeAt);
  const sign = () => signRequest(native, caller, receiver.accountId, vectors.request, { now: vectors.request.madeAt });
  verifier.verify(sign(), vectors.request);
  for (const bytes of ["", "1", "1".repeat(64), "z".repeat(88), "2".repeat(500), "0OIl"]) {
    const header = sign().replace(/signature_z[^~]*/, `signature_z${bytes}`);
    assert.throws(() => verifier.verify(header, vectors.request), /its signature is not one of the account/);
  }
  assert.equal(verifier.verify(sign(), vectors.request), caller.accountId);
});
