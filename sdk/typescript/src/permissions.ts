// Permissions and the names on the wire (docs/wire.md, sections 3 to 5). Pure.
import { cojsonInternals, type JsonObject, type JsonValue } from "cojson";

export const INSTANCE_HEADER = "reside-instance";
export const rpcPath = (replica: string, contract: string, method: string): string =>
  `/replicas/${replica}/rpc/${contract}/${method}`;
export const accountPath = (replica: string): string => `/replicas/${replica}/account`;
export const signedPath = (path: string, instance: string): string => `${path}#${instance}`;
export const grantedPermissions = (account: string): string => `granted-permissions:for-account:${account}`;
export const entryName = (key: string): string => `permission:${key}`;

/** Whether a permission is granted, or expected to be, and with which parameters. */
export type Grant = { granted: boolean; params: JsonObject };

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
  return [account, contract, permission, ...(instanceId === undefined ? [] : [instanceId])].join(":");
}

/** Return the grant in a JSON document; undefined, which grants nothing, if it is malformed. */
export function parseGrant(data: unknown): Grant | undefined {
  if (!isObject(data) || typeof data.granted !== "boolean") return undefined;
  return { granted: data.granted, params: isObject(data.params) ? (data.params as JsonObject) : {} };
}

/** Return the entry that the members of a map represent; undefined if they contradict its key. */
export function parseEntry(key: string, members: Record<string, unknown>): Entry | undefined {
  const { account, identity, name, instanceId } = members;
  if (typeof account !== "string" || typeof identity !== "string" || typeof name !== "string") return undefined;
  const instance = typeof instanceId === "string" ? instanceId : undefined;
  const ref: PermissionRef = { account, contract: identity, permission: name, instanceId: instance };
  if (keyOf(ref) !== key) return undefined;
  const expected = parseGrant(members.expected) ?? { granted: false, params: {} };
  return { ref, expected, current: parseGrant(members.current) };
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

export function isObject(data: unknown): data is Record<string, unknown> {
  return typeof data === "object" && data !== null && !Array.isArray(data);
}
