// Permissions and the names on the wire (docs/wire.md, sections 3 to 5). Pure.
import { cojsonInternals, type JsonObject, type JsonValue } from "cojson";
import { z } from "zod";
import { resolved } from "./identities.ts";

export const INSTANCE_HEADER = "reside-instance";
export const rpcPath = (replica: string, contract: string, method: string): string =>
  `/replicas/${replica}/rpc/${resolved(contract)}/${method}`;
export const accountPath = (replica: string): string => `/replicas/${replica}/account`;
export const signedPath = (path: string, instance: string): string => `${path}#${instance}`;
export const grantedPermissions = (account: string): string => `granted-permissions:for-account:${account}`;

const Grant = z.object({ granted: z.boolean(), params: z.custom<JsonObject>(isObject).catch(() => ({})) });
/** Whether a permission is granted, or expected to be, and with which parameters. */
export type Grant = z.output<typeof Grant>;
export const NOT_GRANTED: Grant = { granted: false, params: {} };

/** A permission of one grantee. */
export interface PermissionRef {
  account: string;
  contract: string;
  permission: string;
  instanceId?: string | undefined;
}

/** An entry of a control block. */
export interface Entry {
  ref: PermissionRef;
  expected: Grant;
  current: Grant | undefined;
}

export type Act = "granted" | "revoked" | "updated";

/** Return the key of a permission in a control block. */
export function keyOf({ account, contract, permission, instanceId }: PermissionRef): string {
  return [account, resolved(contract), permission, ...(instanceId === undefined ? [] : [instanceId])].join(":");
}

const Members = z.object({
  account: z.string(),
  identity: z.string(),
  name: z.string(),
  instanceId: z.string().optional().catch(undefined),
  expected: Grant.catch(NOT_GRANTED),
  current: Grant.optional().catch(undefined),
});

/** Return the entry that the members of a map represent; undefined if they contradict its key. */
export function parseEntry(key: string, members: object): Entry | undefined {
  const { data } = Members.safeParse(members);
  if (!data) return undefined;
  const { account, identity: contract, name: permission, instanceId, expected, current } = data;
  const ref = { account, contract, permission, instanceId };
  return keyOf(ref) === key ? { ref, expected, current } : undefined;
}

/** Whether the grantee has the permission. */
export function inForce(entry: Entry | undefined): entry is Entry {
  return entry !== undefined && entry.expected.granted && isEqual(entry.expected, entry.current);
}

/** Return what is to be done so that `current` becomes `expected`; undefined: nothing. */
export function nextAct({ expected, current }: Entry, isImplemented: boolean): Act | undefined {
  const has = current?.granted === true;
  if (!isImplemented || !expected.granted) return has ? "revoked" : undefined;
  if (isEqual(expected, current)) return undefined;
  return has ? "updated" : "granted";
}

export function isEqual(one: JsonValue | undefined, other: JsonValue | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  return cojsonInternals.stableStringify(one) === cojsonInternals.stableStringify(other);
}

/** Return the value of a JSON text; undefined: it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

export function isObject(data: unknown): data is Record<string, unknown> {
  return typeof data === "object" && data !== null && !Array.isArray(data);
}
