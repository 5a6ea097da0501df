// The key that two accounts share, and the codes made with it (docs/wire.md, section 5, "Shared key").
import { createHmac, createPrivateKey, createPublicKey, diffieHellman, timingSafeEqual } from "node:crypto";
import type { AgentSecret, CryptoProvider } from "cojson";
import { fromBase58 } from "./base58.ts";

/** Return the key of two accounts, from the secret of one and the agent of the other; undefined: the agent is unusable. */
export function sharedKey(crypto: CryptoProvider, agentSecret: string, otherAgent: string): Buffer | undefined {
  const secret = agentSecret as AgentSecret;
  const d = fromBase58(crypto.getAgentSealerSecret(secret), "sealerSecret_z");
  const own = fromBase58(sealerOf(crypto.getAgentID(secret)), "sealer_z");
  const other = fromBase58(sealerOf(otherAgent), "sealer_z");
  if (d?.length !== 32 || own?.length !== 32 || other?.length !== 32) return undefined;
  try {
    const privateKey = createPrivateKey({ key: { ...jwk(own), d: d.toString("base64url") }, format: "jwk" });
    const publicKey = createPublicKey({ key: jwk(other), format: "jwk" });
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
  return agent.slice(0, agent.indexOf("/"));
}

function jwk(key: Buffer) {
  return { kty: "OKP", crv: "X25519", x: key.toString("base64url") };
}
