// Settings of a replica, read from the environment (docs/wire.md, section 2).
import { z } from "zod";

const text = z.string().min(1);
const coId = text.startsWith("co_z");

/** What a replica needs before it can log in: `replicaName` is the variable `RESIDE_REPLICA_NAME`, and so on. */
const Settings = z.object({
  replicaName: text,
  controlBlockId: coId,
  accountId: coId,
  agentSecret: text.startsWith("sealerSecret_"),
  syncServerUrl: text,
  etcdHosts: text.transform((list) => list.split(",").map((host) => host.trim().replace(/\/$/, "")).filter(Boolean)),
  internalEndpoint: text.optional(),
  externalEndpoint: text.optional(),
  accessContext: z.enum(["internal", "external"]).default("internal"),
  listenHost: text.default("0.0.0.0"),
  listenPort: z.coerce.number().int().min(0).max(65535).default(8080),
});
export type Settings = z.output<typeof Settings>;

const variableOf = (setting: PropertyKey) => `RESIDE_${String(setting).replace(/[A-Z]/g, "_$&").toUpperCase()}`;

/** Read the settings. The error of an invalid environment names the variables, never their values. */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const given = Object.keys(Settings.shape).map((setting) => [setting, environment[variableOf(setting)] || undefined]);
  const parsed = Settings.safeParse(Object.fromEntries(given));
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.map(({ path, code }) => `${variableOf(path[0]!)}: ${code}`);
  throw new Error(`the environment of this replica is invalid: ${faults.join("; ")}`);
}
