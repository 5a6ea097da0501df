// The key that two accounts share, and the codes made with it (docs/wire.md, section 5, "Shared key").
import { createHmac, createPrivateKey, createPublicKey, diffieHellman, timingSafeEqual, type JsonWebKey } from "node:crypto";
import { cojsonInternals, type AgentSecret, type CryptoProvider } from "cojson";

/** Return the bytes after the prefix of an id, a key or a signature; undefined: there are not `length` of them. */
export function fromBase58(text: string, prefix: string, length: number): Buffer | undefined {
  if (!text.startsWith(prefix) || text.length > 128) return undefined;
  try {
    const bytes = cojsonInternals.rawCoIDtoBytes(`co_z${text.slice(prefix.length)}`);
    return bytes.length === length ? Buffer.from(bytes) : undefined;
  } catch {
    return undefined; // a character is not one of Base58
  }
}

/** Return a key of Curve25519 in the form that Node reads. */
export function jwkOf(curve: "X25519" | "Ed25519", key: Buffer): JsonWebKey {
  return { kty: "OKP", crv: curve, x: key.toString("base64url") };
}

/** Return the key of two accounts, from the secret of one and the agent of the other; undefined: the agent is unusable. */
export function sharedKey(crypto: CryptoProvider, agentSecret: string, otherAgent: string): Buffer | undefined {
  const secret = agentSecret as AgentSecret;
  const d = fromBase58(crypto.getAgentSealerSecret(secret), "sealerSecret_z", 32);
  const own = fromBase58(sealerOf(crypto.getAgentID(secret)), "sealer_z", 32);
  const other = fromBase58(sealerOf(otherAgent), "sealer_z", 32);
  if (!d || !own || !other) return undefined;
  try {
    const privateKey = createPrivateKey({ key: { ...jwkOf("X25519", own), d: d.toString("base64url") }, format: "jwk" });
    const publicKey = createPublicKey({ key: jwkOf("X25519", other), format: "jwk" });
    return createHmac("sha256", diffieHellman({ privateKey, publicKey })).update("Jazz-Shared").digest();
  } catch {
    return undefined; // the other sealer is a point of low order
  }
}

/** Return the authentication code of a text, in hexadecimal. */
export function codeOf(text: string, key: Buffer): string {
  return createHmac("sha256", key).update(text).digest("hex");
}

/** Return whether this is the code of a text, in a time that does not depend on the code. */
export function isCode(code: string, text: string, key: Buffer): boolean {
  const [given, expected] = [Buffer.from(code), Buffer.from(codeOf(text, key))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function sealerOf(agent: string): string {
  const end = agent.indexOf("/");
  return end < 0 ? "" : agent.slice(0, end);
}
