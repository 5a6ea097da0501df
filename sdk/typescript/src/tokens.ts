// Bound request tokens (docs/wire.md, section 5).
import { createPublicKey, hash, randomBytes, verify } from "node:crypto";
import { cojsonInternals, type AgentID, type AgentSecret, type CryptoProvider } from "cojson";
import { ResideError } from "./errors.ts";
import { codeOf, fromBase58, isCode, jwkOf, sharedKey } from "./shared.ts";

const BOUND = "Jazz-Bound";
const SHARED = "Jazz-Shared";
const WINDOW_MS = 60_000;
const KNOWN = 1_000;

/** An account and its secret. */
interface Account {
  accountId: string;
  agentSecret: string;
}

/** The request that a token is for. `path` is the signed path, with the process of the receiver. */
export interface SignedRequest {
  method: string;
  path: string;
  body: string | Buffer;
}

/** Why a token is refused. The message never contains the token. */
export class TokenRefused extends ResideError {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super("unauthenticated", message);
    this.reason = reason;
  }
}

/** Return the SHA-256 of a path or a body, in hexadecimal. */
export function digest(data: string | Buffer): string {
  return hash("sha256", data, "hex");
}

/** Return the id of the account of an agent: the hash of its header. */
export function accountOf(crypto: CryptoProvider, agent: string): string {
  const ruleset = { type: "group", initialAdmin: agent as AgentID } as const;
  const header = { type: "comap", ruleset, meta: { type: "account" }, createdAt: null, uniqueness: null } as const;
  return cojsonInternals.idforHeader(header, crypto);
}

/** Return the `Authorization` header of a request to one receiver; with the key that both share, it has no signature. */
export function signRequest(
  crypto: CryptoProvider,
  caller: Account & { agentId: string },
  receiver: string,
  request: SignedRequest,
  { now = Date.now(), nonce = randomBytes(16).toString("base64url"), key }: SignOptions = {},
): string {
  const about = [caller.accountId, String(now), caller.agentId, nonce, receiver, request.method];
  const fields = [...about, digest(request.path), digest(request.body)];
  if (key) return `${SHARED} ${[codeOf(JSON.stringify([SHARED, ...fields]), key), ...fields].join("~")}`;
  const signature = crypto.sign(crypto.getAgentSignerSecret(caller.agentSecret as AgentSecret), [BOUND, ...fields]);
  return `${BOUND} ${[signature, ...fields].join("~")}`;
}

interface SignOptions {
  now?: number;
  nonce?: string;
  key?: Buffer | undefined;
}

/** What follows from an agent that has proved its account, so it stays true. */
interface Known {
  account: string;
  /** The key that the agent shares with this account, once it has used it. */
  key: Buffer | undefined;
}

/** Returns the account that made a token for exactly this request. */
export type Verify = (header: string | undefined, request: SignedRequest) => string;

/** Return what verifies tokens for one account, and refuses a second use of each. */
export function newVerifier(crypto: CryptoProvider, me: Account, clock: () => number = Date.now): Verify {
  const known = new Map<string, Known>(); // by agent; strangers without a key fill nothing
  let used = new Map<string, number>();
  let nextSweep = 0;

  const remember = (agent: string, about: Known) => {
    const [oldest] = known.keys();
    if (!known.has(agent) && known.size >= KNOWN && oldest !== undefined) known.delete(oldest);
    known.set(agent, about);
  };

  const use = (key: string, until: number, now: number) => {
    if (now >= nextSweep) {
      used = new Map([...used].filter(([, end]) => end >= now));
      nextSweep = now + WINDOW_MS;
    }
    if (used.has(key)) throw new TokenRefused("reused", "it was used before");
    used.set(key, until);
  };

  return (header, request) => {
    if (!header) throw new TokenRefused("missing", "the request has no Authorization header");
    const scheme = header.slice(0, header.indexOf(" "));
    const isOurs = (scheme === BOUND || scheme === SHARED) && header.length <= 1024;
    const fields = isOurs ? header.slice(scheme.length + 1).split("~") : [];
    const [proof = "", account = "", made = "", agent = "", nonce = "", receiver, method, path, body] = fields;
    const isWhole = fields.length === 9 && /^(0|[1-9][0-9]*)$/.test(made) && account.startsWith("co_z");
    if (!isWhole || !/^[A-Za-z0-9_-]{1,64}$/.test(nonce)) {
      throw new TokenRefused("malformed", "it is not of the form Jazz-Bound or Jazz-Shared with nine fields");
    }
    const now = clock();
    if (now - Number(made) > WINDOW_MS) throw new TokenRefused("expired", "it is older than 60 s");
    if (Number(made) - now > WINDOW_MS) throw new TokenRefused("future", "it is more than 60 s ahead of this clock");
    const { accountId } = me;
    if (receiver !== accountId) throw new TokenRefused("receiver", `it was made for another receiver than ${accountId}`);
    if (method !== request.method) throw new TokenRefused("method", "it was made for another method");
    if (path !== digest(request.path)) throw new TokenRefused("path", "it was made for another path");
    if (body !== digest(request.body)) throw new TokenRefused("body", "it was made for another body");
    const before = known.get(agent);
    if ((before?.account ?? accountOf(crypto, agent)) !== account) {
      throw new TokenRefused("account", "its agent is not the agent of its account");
    }
    const content = JSON.stringify([scheme, ...fields.slice(1)]);
    let key = before?.key;
    if (scheme === SHARED) {
      key ??= sharedKey(crypto, me.agentSecret, agent);
      if (!key || !isCode(proof, content, key)) {
        throw new TokenRefused("signature", "its code is not one of the account over this request");
      }
    } else if (!isSigned(proof, content, agent.slice(agent.lastIndexOf("/") + 1))) {
      throw new TokenRefused("signature", "its signature is not one of the account over this request");
    }
    remember(agent, { account, key });
    use(`${account}~${nonce}`, Number(made) + WINDOW_MS, now);
    return account;
  };
}

/** Node verifies, since the native part of cojson 0.20.19 aborts the process for a key that is not on the curve. */
function isSigned(signature: string, content: string, signer: string): boolean {
  const key = fromBase58(signer, "signer_z", 32);
  const bytes = fromBase58(signature, "signature_z", 64);
  if (!key || !bytes) return false;
  try {
    return verify(null, Buffer.from(content), createPublicKey({ key: jwkOf("Ed25519", key), format: "jwk" }), bytes);
  } catch {
    return false; // the key is not on the curve
  }
}
