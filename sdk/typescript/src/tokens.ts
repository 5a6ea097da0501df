// Bound request tokens (docs/wire.md, section 5).
import { createPublicKey, hash, randomBytes, verify } from "node:crypto";
import { cojsonInternals, type AgentID, type AgentSecret, type CojsonInternalTypes, type CryptoProvider } from "cojson";

import { fromBase58 } from "./base58.ts";
import { codeOf, isCode, sharedKey } from "./shared.ts";

type Signature = CojsonInternalTypes.Signature;
type SignerID = CojsonInternalTypes.SignerID;

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
export class TokenRefused extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
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
  key?: Buffer;
  /** Whether the agent has signed, so its signer is on the curve. */
  hasSigned?: boolean;
}

/** Verifies tokens for one account, and refuses a second use of each. */
export class TokenVerifier {
  readonly #crypto: CryptoProvider;
  readonly #me: Account;
  readonly #clock: () => number;
  #used = new Map<string, number>();
  /** By agent. Strangers without a key fill nothing. */
  readonly #known = new Map<string, Known>();
  #nextSweep = 0;

  constructor(crypto: CryptoProvider, me: Account, clock: () => number = Date.now) {
    this.#crypto = crypto;
    this.#me = me;
    this.#clock = clock;
  }

  /** Return the account that made a token for exactly this request. */
  verify(header: string | undefined, request: SignedRequest): string {
    if (!header) throw new TokenRefused("missing", "the request has no Authorization header");
    const scheme = header.slice(0, header.indexOf(" "));
    const isOurs = (scheme === BOUND || scheme === SHARED) && header.length <= 1024;
    const fields = isOurs ? header.slice(scheme.length + 1).split("~") : [];
    const [proof = "", account = "", made = "", agent = "", nonce = ""] = fields;
    const [receiver, method, path, body] = fields.slice(5);
    const isWhole = fields.length === 9 && /^[0-9]+$/.test(made) && account.startsWith("co_z");
    if (!isWhole || nonce.length < 1 || nonce.length > 64) {
      throw new TokenRefused("malformed", "it is not of the form Jazz-Bound or Jazz-Shared with nine fields");
    }
    const now = this.#clock();
    if (now - Number(made) > WINDOW_MS) throw new TokenRefused("expired", "it is older than 60 s");
    if (Number(made) - now > WINDOW_MS) throw new TokenRefused("future", "it is more than 60 s ahead of this clock");
    const { accountId } = this.#me;
    if (receiver !== accountId) throw new TokenRefused("receiver", `it was made for another receiver than ${accountId}`);
    if (method !== request.method) throw new TokenRefused("method", "it was made for another method");
    if (path !== digest(request.path)) throw new TokenRefused("path", "it was made for another path");
    if (body !== digest(request.body)) throw new TokenRefused("body", "it was made for another body");
    const known = this.#known.get(agent);
    if ((known?.account ?? accountOf(this.#crypto, agent)) !== account) {
      throw new TokenRefused("account", "its agent is not the agent of its account");
    }
    const content = [scheme, ...fields.slice(1)];
    if (scheme === SHARED) this.#checkCode(proof, content, agent, account);
    else this.#checkSignature(proof, content, agent, account);
    this.#use(`${account}~${nonce}`, Number(made) + WINDOW_MS, now);
    return account;
  }

  #checkCode(code: string, content: string[], agent: string, account: string): void {
    const known = this.#known.get(agent);
    const key = known?.key ?? sharedKey(this.#crypto, this.#me.agentSecret, agent);
    if (!key || !isCode(code, JSON.stringify(content), key)) {
      throw new TokenRefused("signature", "its code is not one of the account over this request");
    }
    this.#remember(agent, { ...known, account, key });
  }

  #checkSignature(signature: string, content: string[], agent: string, account: string): void {
    const signer = agent.slice(agent.lastIndexOf("/") + 1);
    const known = this.#known.get(agent);
    if (!(known?.hasSigned ? this.#isSignedAgain(signature, content, signer) : isSigned(signature, content, signer))) {
      throw new TokenRefused("signature", "its signature is not one of the account over this request");
    }
    this.#remember(agent, { ...known, account, hasSigned: true });
  }

  /** cojson's `verify` takes half of the time, and is safe for keys that are on the curve. */
  #isSignedAgain(signature: string, content: string[], signer: string): boolean {
    try {
      return this.#crypto.verify(signature as Signature, content, signer as SignerID);
    } catch {
      return false; // the signature is malformed
    }
  }

  #remember(agent: string, known: Known): void {
    const [oldest] = this.#known.keys();
    if (!this.#known.has(agent) && this.#known.size >= KNOWN && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(agent, known);
  }

  #use(key: string, until: number, now: number): void {
    if (now >= this.#nextSweep) {
      this.#used = new Map([...this.#used].filter(([, end]) => end >= now));
      this.#nextSweep = now + WINDOW_MS;
    }
    if (this.#used.has(key)) throw new TokenRefused("reused", "it was used before");
    this.#used.set(key, until);
  }
}

// The native part of cojson 0.20.19 aborts the process for a key that is not on the curve, so it verifies only later calls.
function isSigned(signature: string, content: string[], signer: string): boolean {
  const key = fromBase58(signer, "signer_z");
  const bytes = fromBase58(signature, "signature_z");
  if (key?.length !== 32 || bytes?.length !== 64) return false;
  try {
    const jwk = { kty: "OKP", crv: "Ed25519", x: key.toString("base64url") };
    return verify(null, Buffer.from(JSON.stringify(content)), createPublicKey({ key: jwk, format: "jwk" }), bytes);
  } catch {
    return false; // the key is not on the curve
  }
}
