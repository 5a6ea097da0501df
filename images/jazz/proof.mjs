// Proof of an account (PROOF=required): the address of a connection has the parameter `proof`, a token that the account's
// agent signed for this server and this minute. Within this minute the token can be used again by whoever gets hold of it,
// as a key could, so it belongs into no log.
import { cojsonInternals } from "cojson";
import { isSignature, isValueId } from "./shape.mjs";

const PURPOSE = "reside.jazz proof";
const WINDOW_MS = 60_000;
const MAX_CHARACTERS = 4096;

/** Verifies proofs. */
export class ProofCheck {
  #crypto;
  #shape;
  #hosts;

  /**
   * @param {object} crypto cojson's
   * @param {object} shape a `MessageCheck`
   * @param {string[]} hosts the names of this server; one without a port stands for all ports
   */
  constructor(crypto, shape, hosts) {
    this.#crypto = crypto;
    this.#shape = shape;
    this.#hosts = new Set(hosts);
  }

  /**
   * Verify the proof in the target of an opening request.
   *
   * @param {string} target path with query
   * @param {number} now ms since the epoch
   * @returns {{account: string} | {reason: string}} the account, or why it is not proven
   */
  verify(target, now) {
    const text = new URLSearchParams(target.slice(target.indexOf("?") + 1)).get("proof");
    if (text === null) return { reason: "the proof is missing" };
    const fields = text.length > MAX_CHARACTERS ? undefined : decoded(text);
    if (!fields) return { reason: "the proof is malformed" };
    const [account, agent, time, host, signature] = fields;
    if (!isValueId(account) || typeof agent !== "string" || !this.#shape.isAgent(agent) || !Number.isSafeInteger(time) || !isSignature(signature)) {
      return { reason: "the proof is malformed" };
    }
    if (Math.abs(now - time) > WINDOW_MS) return { reason: "the proof is expired, or from the future: compare the clocks" };
    if (typeof host !== "string" || !(this.#hosts.has(host) || this.#hosts.has(host.replace(/:\d+$/, "")))) {
      return { reason: "the proof was made for another host than PROOF_HOSTS" };
    }
    if (this.#accountOf(agent) !== account) return { reason: "the proof has the agent of another account" };
    if (!this.#crypto.verify(signature, [PURPOSE, account, agent, time, host], this.#crypto.getAgentSignerID(agent))) {
      return { reason: "the signature of the proof does not verify" };
    }
    return { account };
  }

  #accountOf(agent) {
    const ruleset = { type: "group", initialAdmin: agent };
    const header = { type: "comap", ruleset, meta: { type: "account" }, createdAt: null, uniqueness: null };
    return cojsonInternals.idforHeader(header, this.#crypto);
  }
}

function decoded(text) {
  try {
    const fields = JSON.parse(Buffer.from(text, "base64url").toString());
    return Array.isArray(fields) ? fields : undefined;
  } catch {
    return undefined;
  }
}
