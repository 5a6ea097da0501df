// The public profile of a replica (docs/wire.md, section 6).
import type { LocalNode } from "cojson";
import { z } from "zod";
import { loadMap, now } from "./values.ts";

const address = z.string().optional().catch(undefined);
const Profile = z.object({
  name: z.string(),
  replicaId: z.number().nullable().catch(null),
  endpoints: z.object({ internal: address, external: address }),
  contracts: z.record(z.string(), z.string().nullable().catch(null)),
});

/** What the profile of a replica says. */
export type Profile = z.output<typeof Profile>;

/** Read the members of a profile; undefined if it is not that of a replica, or not yet. */
export const parseProfile = (members: object): Profile | undefined => Profile.safeParse(members).data;

/** Replace members that are ids of maps, as in the first implementation, by their content. */
export async function withMaps(node: LocalNode, members: Record<string, unknown>): Promise<Record<string, unknown>> {
  const content = async (value: unknown) => (typeof value === "string" ? now(await loadMap(node, value)).toJSON() : value);
  return { ...members, endpoints: await content(members.endpoints), contracts: await content(members.contracts) };
}
