// Bound request tokens (docs/wire.md, section 5).
import { createPublicKey, hash, randomBytes, verify } from "node:crypto";
import { cojsonInternals, type AgentID, type AgentSecret, type CojsonInternalTypes, type CryptoProvider } from "cojson";

type Signature = CojsonInternalTypes.Signature;
type SignerID = CojsonInternalTypes.SignerID;

const SCHEME = "Jazz-Bound ";
const WINDOW_MS = 60_000;
const KNOWN = 1_000;
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

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

/** Return the `Authorization` header of a request to one receiver. */
export function signRequest(
  crypto: CryptoProvider,
  caller: { accountId: string; agentSecret: string },
  receiver: string,
  request: SignedRequest,
  { now = Date.now(), nonce = randomBytes(16).toString("base64url") } = {},
): string {
  const secret = caller.agentSecret as AgentSecret;
  const about = [caller.accountId, String(now), crypto.getAgentID(secret), nonce, receiver, request.method];
  const fields = [...about, digest(request.path), digest(request.body)];
  const signature = crypto.sign(crypto.getAgentSignerSecret(secret), ["Jazz-Bound", ...fields]);
  return SCHEME + [signature, ...fields].join("~");
}

/** Verifies tokens for one account, and refuses a second use of each. */
export class TokenVerifier {
  readonly #crypto: CryptoProvider;
  readonly #me: string;
  readonly #clock: () => number;
  #used = new Map<string, number>();
  /** Agents that have signed a call → their accounts, which follow from them. Strangers without a key fill nothing. */
  readonly #known = new Map<string, string>();
  #nextSweep = 0;

  constructor(crypto: CryptoProvider, me: string, clock: () => number = Date.now) {
    this.#crypto = crypto;
    this.#me = me;
    this.#clock = clock;
  }

  /** Return the account that made a token for exactly this request. */
  verify(header: string | undefined, request: SignedRequest): string {
    if (!header) throw new TokenRefused("missing", "the request has no Authorization header");
    const fields = header.startsWith(SCHEME) && header.length <= 1024 ? header.slice(SCHEME.length).split("~") : [];
    const [signature = "", account = "", made = "", agent = "", nonce = ""] = fields;
    const [receiver, method, path, body] = fields.slice(5);
    const isWhole = fields.length === 9 && /^[0-9]+$/.test(made) && account.startsWith("co_z");
    if (!isWhole || nonce.length < 1 || nonce.length > 64) {
      throw new TokenRefused("malformed", "it is not of the form Jazz-Bound with nine fields");
    }
    const now = this.#clock();
    if (now - Number(made) > WINDOW_MS) throw new TokenRefused("expired", "it is older than 60 s");
    if (Number(made) - now > WINDOW_MS) throw new TokenRefused("future", "it is more than 60 s ahead of this clock");
    if (receiver !== this.#me) throw new TokenRefused("receiver", `it was made for another receiver than ${this.#me}`);
    if (method !== request.method) throw new TokenRefused("method", "it was made for another method");
    if (path !== digest(request.path)) throw new TokenRefused("path", "it was made for another path");
    if (body !== digest(request.body)) throw new TokenRefused("body", "it was made for another body");
    const known = this.#known.get(agent);
    if ((known ?? accountOf(this.#crypto, agent)) !== account) {
      throw new TokenRefused("account", "its agent is not the agent of its account");
    }
    const signer = agent.slice(agent.lastIndexOf("/") + 1);
    const content = ["Jazz-Bound", ...fields.slice(1)];
    if (!(known ? this.#isSignedAgain(signature, content, signer) : isSigned(signature, content, signer))) {
      throw new TokenRefused("signature", "its signature is not one of the account over this request");
    }
    if (!known) this.#remember(agent, account);
    this.#use(`${account}~${nonce}`, Number(made) + WINDOW_MS, now);
    return account;
  }

  /** cojson's `verify` takes half of the time, and is safe for keys that are on the curve, as those of known agents are. */
  #isSignedAgain(signature: string, content: string[], signer: string): boolean {
    try {
      return this.#crypto.verify(signature as Signature, content, signer as SignerID);
    } catch {
      return false; // the signature is malformed
    }
  }

  #remember(agent: string, account: string): void {
    const [oldest] = this.#known.keys();
    if (this.#known.size >= KNOWN && oldest !== undefined) this.#known.delete(oldest);
    this.#known.set(agent, account);
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

/** Digits that a number holds exactly: 58 ** 8 is less than 2 ** 53. */
const DIGITS = 8;

function fromBase58(text: string, prefix: string): Buffer | undefined {
  if (!text.startsWith(prefix) || text.length > 128) return undefined;
  const digits = text.slice(prefix.length);
  let whole = 0n;
  for (let at = 0; at < digits.length; at += DIGITS) {
    const part = digits.slice(at, at + DIGITS);
    let number = 0;
    for (const digit of part) {
      const value = ALPHABET.indexOf(digit);
      if (value < 0) return undefined;
      number = number * 58 + value;
    }
    whole = whole * BigInt(58 ** part.length) + BigInt(number);
  }
  const hex = whole === 0n ? "" : whole.toString(16);
  const zeros = digits.length - digits.replace(/^1+/, "").length;
  return Buffer.concat([Buffer.alloc(zeros), Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex")]);
}
