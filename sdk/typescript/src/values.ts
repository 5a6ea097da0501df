// Maps in Jazz by their ids and unique names, below jazz-tools' typed values.
import { cojsonInternals, type CoID, type JsonValue, type LocalNode, type RawCoMap, type RawGroup } from "cojson";
import { ResideError } from "./errors.ts";
import { isEqual } from "./permissions.ts";

const ID = /^co_z[1-9A-HJ-NP-Za-km-z]{10,60}$/;

/** Return the current state of a map. */
export function now(map: RawCoMap): RawCoMap {
  return map.core.getCurrentContent() as RawCoMap;
}

/** Return the id of the group or account that owns a map. */
export function ownerOf(map: RawCoMap): string | undefined {
  const { ruleset } = map.core.verified.header;
  return ruleset.type === "ownedByGroup" ? ruleset.group : undefined;
}

/** Load a map; undefined if this can't be its id, the sync server does not have it, or it is not a map. */
export async function findMap(node: LocalNode, id: string, retry = false): Promise<RawCoMap | undefined> {
  if (!ID.test(id)) return undefined;
  const found = await node.load(id as CoID<RawCoMap>, !retry);
  return found === "unavailable" || found.type !== "comap" ? undefined : found;
}

/** Load a map that must exist. */
export async function loadMap(node: LocalNode, id: string): Promise<RawCoMap> {
  const found = await findMap(node, id, true);
  if (!found) throw new ResideError("not-ready", `${id} can't be loaded`);
  return found;
}

/** Return the id of the map with a unique name in a group. Every program computes the same id. */
export function uniqueId(node: LocalNode, group: string, name: string): string {
  const ruleset = { type: "ownedByGroup", group: group as CoID<RawGroup> } as const;
  return cojsonInternals.idforHeader({ type: "comap", ruleset, meta: null, uniqueness: name }, node.crypto);
}

/** Load the map with a unique name in a group; undefined if nobody who may write it has done so. */
export async function findUnique(node: LocalNode, group: string, name: string): Promise<RawCoMap | undefined> {
  const found = await findMap(node, uniqueId(node, group, name));
  return found && now(found).keys().length > 0 ? found : undefined;
}

/** Set the members of a map that differ. */
export function assign(map: RawCoMap, members: Record<string, JsonValue>): void {
  const before = now(map);
  const changed = Object.entries(members).filter(([key, value]) => !isEqual(before.get(key), value));
  if (changed.length > 0) before.assign(Object.fromEntries(changed));
}

/** Wait until `look` returns something, at each state of a map. */
export function until<T>(map: RawCoMap, look: (state: RawCoMap) => T | undefined, signal?: AbortSignal): Promise<T> {
  let end: (() => void) | undefined;
  const found = new Promise<T>((resolve, reject) => {
    const stop = () => reject(new ResideError("not-ready", "the wait was aborted"));
    if (signal?.aborted) return stop();
    const unsubscribe = map.subscribe((state) => {
      try {
        const seen = look(now(state));
        if (seen !== undefined) resolve(seen);
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    signal?.addEventListener("abort", stop, { once: true });
    end = () => {
      unsubscribe();
      signal?.removeEventListener("abort", stop);
    };
  });
  return found.finally(() => end?.());
}

/** Wait until everything that the sync server had of loaded values has arrived: one round trip for a small value. */
export async function catchUp(node: LocalNode, small: RawCoMap, withinMs = 30_000): Promise<void> {
  const { syncManager } = node;
  const peer = syncManager.getServerPeers(small.id)[0];
  if (!peer) throw new ResideError("not-ready", "the sync server is not connected");
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      unsubscribe();
      reject(new ResideError("not-ready", "the sync server does not answer"));
    }, withinMs);
    const unsubscribe = syncManager.syncState.subscribeToPeerUpdates(peer.id, small.id, () => {
      clearTimeout(timer);
      unsubscribe();
      resolve();
    });
    peer.pushOutgoingMessage({ action: "load", ...small.core.knownState() });
  });
}

/** Return the id that a look-up points to. */
export function targetOf(pointer: RawCoMap): string | undefined {
  return [pointer.get("target"), pointer.get("value")].find((id) => typeof id === "string");
}
