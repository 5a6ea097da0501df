// Settings of a replica, read from the environment (docs/wire.md, section 2).
import { z } from "zod";

const text = z.string().min(1);
const Environment = z.object({
  RESIDE_REPLICA_NAME: text,
  RESIDE_CONTROL_BLOCK_ID: text.startsWith("co_z"),
  RESIDE_ACCOUNT_ID: text.startsWith("co_z"),
  RESIDE_AGENT_SECRET: text.startsWith("sealerSecret_"),
  RESIDE_SYNC_SERVER_URL: text,
  RESIDE_ETCD_HOSTS: text,
  RESIDE_INTERNAL_ENDPOINT: text.optional(),
  RESIDE_EXTERNAL_ENDPOINT: text.optional(),
  RESIDE_ACCESS_CONTEXT: z.enum(["internal", "external"]).default("internal"),
  RESIDE_LISTEN_HOST: text.default("0.0.0.0"),
  RESIDE_LISTEN_PORT: z.coerce.number().int().min(0).max(65535).default(8080),
});

/** What a replica needs before it can log in. */
export interface Settings {
  replicaName: string;
  controlBlockId: string;
  accountId: string;
  agentSecret: string;
  syncServerUrl: string;
  etcdHosts: string[];
  internalEndpoint: string | undefined;
  externalEndpoint: string | undefined;
  accessContext: "internal" | "external";
  listenHost: string;
  listenPort: number;
}

/** Read the settings. The error of an invalid environment names the variables, never their values. */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ""));
  const parsed = Environment.safeParse(given);
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.code}`);
    throw new Error(`the environment of this replica is invalid: ${faults.join("; ")}`);
  }
  const found = parsed.data;
  return {
    replicaName: found.RESIDE_REPLICA_NAME,
    controlBlockId: found.RESIDE_CONTROL_BLOCK_ID,
    accountId: found.RESIDE_ACCOUNT_ID,
    agentSecret: found.RESIDE_AGENT_SECRET,
    syncServerUrl: found.RESIDE_SYNC_SERVER_URL,
    etcdHosts: found.RESIDE_ETCD_HOSTS.split(",").map((host) => host.trim().replace(/\/$/, "")).filter(Boolean),
    internalEndpoint: found.RESIDE_INTERNAL_ENDPOINT,
    externalEndpoint: found.RESIDE_EXTERNAL_ENDPOINT,
    accessContext: found.RESIDE_ACCESS_CONTEXT,
    listenHost: found.RESIDE_LISTEN_HOST,
    listenPort: found.RESIDE_LISTEN_PORT,
  };
}
