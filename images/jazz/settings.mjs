// The settings of the server, from environment variables. server.mjs lists them.
const MODES = ["open", "members"];
const PROOFS = ["none", "required"];
const QUOTAS = { messages: 1_000_000, bytes: 4 * 1024 ** 3, values: 250_000, sessions: 500_000 };
const HOLD_S = 30;
const ERASE_S = 60;

/** A setting is invalid; `fields` has its value. */
export class InvalidSetting extends Error {
  constructor(message, fields) {
    super(message);
    this.fields = fields;
  }
}

/**
 * Read and check the settings.
 *
 * @param {Record<string, string | undefined>} environment
 * @throws {InvalidSetting}
 */
export function readSettings(environment) {
  const hosts = (environment.PROOF_HOSTS ?? "").split(",").map((host) => host.trim().toLowerCase()).filter(Boolean);
  const settings = {
    host: environment.HOST ?? "127.0.0.1",
    port: number(environment, "PORT", environment.PORT ?? "4200", 65535, "PORT is not a port number"),
    db: environment.DB ?? "jazz.sqlite",
    mode: oneOf(environment, "MODE", MODES),
    proof: oneOf(environment, "PROOF", PROOFS),
    proofHosts: hosts,
    eraseMs: 1000 * Math.max(1, number(environment, "ERASE_S", environment.ERASE_S ?? String(ERASE_S), 3600, "ERASE_S is not a number of seconds")),
    holdMs: 1000 * number(environment, "HOLD_S", environment.HOLD_S ?? String(HOLD_S), 3600, "HOLD_S is not a number of seconds"),
    quotas: Object.fromEntries(
      Object.entries(QUOTAS).map(([kind, standard]) => {
        const name = `QUOTA_${kind.toUpperCase()}`;
        return [kind, number(environment, name, environment[name] ?? String(standard), Number.MAX_SAFE_INTEGER, `${name} is not a number`)];
      }),
    ),
  };
  if (settings.proof === "required" && hosts.length === 0) {
    throw new InvalidSetting("PROOF=required needs PROOF_HOSTS, the host names by which clients reach this server", {});
  }
  return settings;
}

function number(environment, name, text, maximum, message) {
  if (!/^\d+$/.test(text) || Number(text) > maximum) throw new InvalidSetting(message, { [name]: environment[name] });
  return Number(text);
}

function oneOf(environment, name, values) {
  const value = environment[name] ?? values[0];
  if (!values.includes(value)) throw new InvalidSetting(`${name} is not one of ${values.join(", ")}`, { [name]: value });
  return value;
}
