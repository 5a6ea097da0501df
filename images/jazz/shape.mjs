// Checks the shape of messages before cojson sees them. cojson's native part aborts the whole process when a key or an
// id does not decode, so one message of any client would stop the server for all.
//
// A content message is checked session by session: a session that is refused costs nobody but itself.
const BASE58 = "[1-9A-HJ-NP-Za-km-z]";
const VALUE_ID = new RegExp(`^co_z${BASE58}{1,64}$`);
const AGENT_ID = new RegExp(`^sealer_[^/]{0,128}/(signer_z${BASE58}{32,44})$`);
const SIGNATURE = new RegExp(`^signature_z(${BASE58}{64,88})$`);
const MAX_SESSION_ID = 256;
const SIGNATURE_BYTES = 64;
const MAX_USABLE_AGENTS = 10_000;
const PRIORITIES = [0, 3, 6];

const ALPHABET = new Map([..."123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"].map((letter, value) => [letter, value]));
const CHUNK = 9; // the most digits that a number holds exactly
const POWERS = Array.from({ length: CHUNK + 1 }, (_, exponent) => 58n ** BigInt(exponent));
const NO_SIGNATURE = `signature_z${"1".repeat(SIGNATURE_BYTES)}`;

/** Checks messages; `crypto` is cojson's, which says whether a key is usable without an abort only in `verify`. */
export class MessageCheck {
  #crypto;
  #usableAgents = new Set();

  constructor(crypto) {
    this.#crypto = crypto;
  }

  /**
   * Return what of a message may be passed on to cojson.
   *
   * @param {unknown} message a parsed message
   * @param {(reason: string, fields?: object) => void} refuse called for the message, or for each session, that is refused
   * @returns {object | undefined} the message without the refused sessions; undefined if all of it is refused
   */
  admitted(message, refuse) {
    if (!isObject(message)) return refuse("a message is not an object");
    if (!["load", "known", "content", "done"].includes(message.action)) return refuse("a message has an unknown action");
    if (!isValueId(message.id)) return refuse("a message names no value");
    if (message.action === "content") return this.#admittedContent(message, refuse);
    if (message.action !== "done" && !isCounts(message.sessions)) return refuse("a known state is malformed", { id: message.id });
    return message;
  }

  #admittedContent(message, refuse) {
    const { id, header, priority } = message;
    if (!isObject(message.new)) return refuse("a content message has no sessions", { id });
    if (header !== undefined && !this.#isHeader(header)) return refuse("a header is malformed", { id });
    const sessions = Object.entries(message.new);
    const kept = sessions.filter(([session, batch]) => {
      const reason = this.#refusalOfSession(session, batch);
      if (reason) refuse(reason, { id, session: session.slice(0, MAX_SESSION_ID) });
      return !reason;
    });
    if (kept.length === sessions.length && PRIORITIES.includes(priority)) return message;
    return { ...message, priority: PRIORITIES.includes(priority) ? priority : PRIORITIES[1], new: Object.fromEntries(kept) };
  }

  #refusalOfSession(session, batch) {
    const end = session.indexOf("_session");
    if (end < 0 || session.length > MAX_SESSION_ID || !this.#isAuthor(session.slice(0, end))) return "a session has no author";
    if (!isObject(batch) || !isCount(batch.after) || !Array.isArray(batch.newTransactions)) return "a session is malformed";
    if (!isSignature(batch.lastSignature)) return "a signature is malformed";
    return batch.newTransactions.every(isObject) ? undefined : "a transaction is not an object";
  }

  #isHeader(header) {
    if (!isObject(header) || !isObject(header.ruleset) || !(header.meta === null || isObject(header.meta))) return false;
    const { type, initialAdmin, group } = header.ruleset;
    if (type === "group") return typeof initialAdmin === "string" && this.#isAuthor(initialAdmin);
    return type === "ownedByGroup" ? isValueId(group) : true;
  }

  #isAuthor(author) {
    return isValueId(author) || this.isAgent(author);
  }

  /** Return whether a text is the id of an agent whose signatures cojson can verify without an abort. */
  isAgent(agent) {
    if (this.#usableAgents.has(agent)) return true;
    const signer = AGENT_ID.exec(agent)?.[1];
    if (!signer) return false;
    try {
      this.#crypto.verify(NO_SIGNATURE, "", signer);
    } catch {
      return false; // the key does not decode, or is no point of the curve
    }
    if (this.#usableAgents.size >= MAX_USABLE_AGENTS) this.#usableAgents.clear();
    this.#usableAgents.add(agent);
    return true;
  }
}

/** Return whether a text has the form of a signature. */
export function isSignature(text) {
  const match = typeof text === "string" ? SIGNATURE.exec(text) : null;
  return match !== null && decodedLength(match[1]) === SIGNATURE_BYTES;
}

/** Return the number of bytes that a base58 text decodes to. */
function decodedLength(text) {
  let number = 0n;
  for (let at = 0; at < text.length; at += CHUNK) {
    const end = Math.min(at + CHUNK, text.length);
    let chunk = 0;
    for (let index = at; index < end; index += 1) chunk = chunk * 58 + ALPHABET.get(text[index]);
    number = number * POWERS[end - at] + BigInt(chunk);
  }
  const zeros = text.length - text.replace(/^1+/, "").length;
  return zeros + (number === 0n ? 0 : Math.ceil(number.toString(16).length / 2));
}

/** Return whether a text has the form of a value's id. */
export function isValueId(id) {
  return typeof id === "string" && VALUE_ID.test(id);
}

function isCounts(counts) {
  return isObject(counts) && Object.values(counts).every(isCount);
}

function isCount(count) {
  return Number.isSafeInteger(count) && count >= 0;
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
