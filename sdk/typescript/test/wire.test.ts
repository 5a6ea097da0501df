import assert from "node:assert/strict";
import { test } from "node:test";
import { cojsonInternals, type JsonObject } from "cojson";
import { readResponse } from "../src/client.ts";
import { parseRequirements } from "../src/control-block.ts";
import { ResideError, STATUSES } from "../src/errors.ts";
import { Locks, outcomeOf, requests } from "../src/locks.ts";
import { accountPath, grantedPermissions, inForce, INSTANCE_HEADER, keyOf, nextAct, parseEntry, rpcPath, signedPath, type Act, type PermissionRef } from "../src/permissions.ts";
import { parseProfile } from "../src/profile.ts";
import { crypto, load } from "./vectors.ts";

interface LockVectors {
  account: string;
  holder: string;
  lease: string;
  createRevision: string;
  modRevision: string;
  keys: { lock: string; key: string }[];
  requests: { operation: string; body: object }[];
  answers: { name: string; answer: Record<string, unknown>; succeeded: boolean; entry: object | null; revision: string }[];
}

test("locks have the keys and the requests of the vectors", () => {
  const { account, holder, keys, lease, createRevision, modRevision, requests: expected } = load<LockVectors>("locks");
  const locks = new Locks(["http://etcd:2379"], account, "greeter", () => Promise.resolve(undefined));
  for (const { lock, key } of keys) assert.equal(locks.keyOf(lock), key);
  const key = keys[0]!.key;
  const made: Record<string, object> = {
    grant: requests.grant(30),
    create: requests.create(key, holder, lease),
    "keep alive": requests.lease(lease),
    touch: requests.touch(key, holder, createRevision, lease),
    confirm: requests.confirm(key, createRevision, lease),
    revoke: requests.lease(lease),
    "time to live": requests.lease(lease),
    "delete unchanged": requests.deleteUnchanged(key, modRevision),
    watch: requests.watch(key, modRevision),
  };
  for (const { operation, body } of expected) assert.deepEqual(made[operation], body, operation);
});

for (const { name, answer, ...outcome } of load<LockVectors>("locks").answers) {
  test(`an answer of etcd: ${name}`, () => {
    assert.deepEqual(outcomeOf(answer), { ...outcome, entry: outcome.entry ?? undefined });
  });
}

interface PermissionVectors {
  group: string;
  keys: { account: string; contract: string; permission: string; instanceId: string | null; key: string; entryName: string; entryId: string }[];
  published: { account: string; name: string; id: string }[];
}

test("permissions have the keys, and their maps the ids, of the vectors", () => {
  const { group, keys, published } = load<PermissionVectors>("permissions");
  const idOf = (uniqueness: string) =>
    cojsonInternals.idforHeader(
      { type: "comap", ruleset: { type: "ownedByGroup", group: group as `co_z${string}` }, meta: null, uniqueness },
      crypto,
    );
  for (const { key, entryName: name, entryId, instanceId, ...ref } of keys) {
    const full: PermissionRef = { ...ref, instanceId: instanceId ?? undefined };
    assert.equal(keyOf(full), key);
    assert.equal(`permission:${key}`, name);
    assert.equal(idOf(name), entryId);
  }
  for (const { account, name, id } of published) {
    assert.equal(grantedPermissions(account), name);
    assert.equal(idOf(name), id);
  }
});

interface BlockVectors {
  block: JsonObject;
  requirements: Record<string, string[]>;
  entries: { name: string; key: string; members: JsonObject; valid: boolean; inForce: boolean; step: Act | null; stepIfNotImplemented: Act | null }[];
}

test("requirements of a control block", () => {
  const { block, requirements } = load<BlockVectors>("control_block");
  assert.deepEqual(Object.fromEntries(parseRequirements(block.requirements)), requirements);
});

for (const vector of load<BlockVectors>("control_block").entries) {
  test(`an entry of a control block: ${vector.name}`, () => {
    const entry = parseEntry(vector.key, vector.members);
    assert.equal(entry !== undefined, vector.valid);
    assert.equal(inForce(entry), vector.inForce);
    assert.equal((entry && nextAct(entry, true)) ?? null, vector.step);
    assert.equal((entry && nextAct(entry, false)) ?? null, vector.stepIfNotImplemented);
  });
}

interface RpcVectors {
  paths: Record<string, string>;
  statuses: Record<string, number>;
  responses: { name: string; status: number; body: unknown; sentAgain: boolean; value?: unknown; code?: string; instance?: string }[];
}

test("paths and statuses", () => {
  const { paths, statuses } = load<RpcVectors>("rpc");
  assert.equal(rpcPath(paths.replica!, paths.contract!, paths.method!), paths.rpc);
  assert.equal(signedPath(paths.rpc!, paths.instance!), paths.signed);
  assert.equal(accountPath(paths.replica!), paths.account);
  assert.equal(INSTANCE_HEADER, paths.instanceHeader);
  assert.deepEqual(STATUSES, statuses);
});

for (const { name, status, body, sentAgain, ...expected } of load<RpcVectors>("rpc").responses) {
  test(`a response: ${name}`, () => {
    const read = () => readResponse(status, JSON.stringify(body));
    if (expected.code !== undefined) {
      assert.throws(read, (error) => error instanceof ResideError && error.code === expected.code);
      return;
    }
    const answer = read();
    assert.equal("again" in answer, sentAgain);
    if ("again" in answer) assert.equal(answer.instance, expected.instance);
    else assert.deepEqual(answer.value, expected.value);
  });
}

for (const { name, members, profile } of load<{ profiles: { name: string; members: JsonObject; profile: object | null }[] }>("profiles").profiles) {
  test(`a profile: ${name}`, () => {
    assert.deepEqual(parseProfile(members) ?? null, profile);
  });
}
