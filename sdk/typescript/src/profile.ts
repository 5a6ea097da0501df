// The public profile of a replica (docs/wire.md, section 6).
import type { LocalNode } from "cojson";
import { isObject } from "./permissions.ts";
import { loadMap, now } from "./values.ts";

/** What the profile of a replica says. */
export interface Members {
  name: string;
  replicaId: number | null;
  endpoints: Record<string, string>;
  contracts: Record<string, string | null>;
}

/** Read the members of a profile; undefined if it is not that of a replica, or not yet. */
export function parseProfile({ name, replicaId, endpoints, contracts }: Record<string, unknown>): Members | undefined {
  if (typeof name !== "string" || !isObject(endpoints) || !isObject(contracts)) return undefined;
  const texts = Object.entries(endpoints).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  const ids = Object.entries(contracts).map(([key, id]) => [key, typeof id === "string" ? id : null] as const);
  const number = typeof replicaId === "number" ? replicaId : null;
  return { name, replicaId: number, endpoints: Object.fromEntries(texts), contracts: Object.fromEntries(ids) };
}

/** Replace members that are ids of maps, as in the first implementation, by their content. */
export async function withMaps(node: LocalNode, members: Record<string, unknown>): Promise<Record<string, unknown>> {
  const found = { ...members };
  for (const name of ["endpoints", "contracts"]) {
    const id = members[name];
    if (typeof id === "string") found[name] = now(await loadMap(node, id)).toJSON();
  }
  return found;
}
