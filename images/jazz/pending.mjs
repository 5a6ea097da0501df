// What one connection sent of one value and the gate has not decided about: usually a single message, for the time of
// one call. It lives on while a value that it depends on is not on this node, at most for a fixed time.
const MESSAGE_SIZE = 1000;
const SESSION_SIZE = 400;
const TRANSACTION_SIZE = 200;

/** Batches of one value, in the order in which they arrived. */
export class Pending {
  #waits = new Map();
  #timer;

  /**
   * @param {object} connection
   * @param {object} peer cojson's state of the connection
   * @param {object} message the first message
   */
  constructor(connection, peer, message) {
    this.connection = connection;
    this.peer = peer;
    this.id = message.id;
    this.priority = message.priority;
    this.header = undefined;
    this.expected = undefined;
    this.entries = [];
    this.owner = undefined;
    this.ruleset = undefined;
    this.refused = undefined;
    this.size = 0;
    this.isAnswered = false;
    this.hasKnown = false;
    this.isDue = false;
    this.add(message);
    this.isHeaderAlone = this.entries.length === 0;
  }

  /** Add the batches of a message, and its header. */
  add(message) {
    this.header ??= message.header;
    if (message.expectContentUntil) this.expected = { ...this.expected, ...message.expectContentUntil };
    for (const session of Object.keys(message.new)) {
      this.entries.push({ session, batch: message.new[session], count: 0, reason: undefined, needs: undefined, missing: [] });
    }
  }

  /** Return the first batch of each session: the later ones have to follow it. */
  heads() {
    if (this.entries.length < 2) return this.entries.slice();
    const heads = new Map();
    for (const entry of this.entries) if (!heads.has(entry.session)) heads.set(entry.session, entry);
    return [...heads.values()];
  }

  /** Remove decided batches. */
  remove(entries) {
    if (entries.length === this.entries.length) return void (this.entries = []);
    const decided = new Set(entries);
    this.entries = this.entries.filter((entry) => !decided.has(entry));
  }

  /** Remove a batch of which all is known. */
  forget(entry) {
    this.hasKnown = true;
    this.remove([entry]);
  }

  /** Remove refused batches, and note them for the report to the sender. */
  refuse(entries) {
    this.refused ??= {};
    for (const { session, batch } of entries) {
      this.refused[session] = Math.max(this.refused[session] ?? 0, batch.after + batch.newTransactions.length);
    }
    this.remove(entries);
  }

  /** Return whether the sender announced more sessions of this value than are here or, by `counts`, on the node. */
  expectsMore(counts) {
    if (!this.expected) return false;
    const here = { ...this.refused };
    for (const { session, batch } of this.entries) here[session] = batch.after + batch.newTransactions.length;
    return Object.keys(this.expected).some((session) => Math.max(counts[session] ?? 0, here[session] ?? 0) < this.expected[session]);
  }

  /** Call `wake` whenever the state of another value changes; return whether this is the first call for that value. */
  waitFor(core, wake) {
    if (this.#waits.has(core.id)) return false;
    this.#waits.set(core.id, core.subscribe(wake, false));
    return true;
  }

  /** Call `expire` when the time is over, counted from the first call. */
  limit(ms, expire) {
    this.#timer ??= setTimeout(expire, ms);
  }

  /** Stop waiting. */
  stop() {
    clearTimeout(this.#timer);
    for (const unsubscribe of this.#waits.values()) unsubscribe();
    this.#waits.clear();
  }
}

/** Return about how much memory a message takes, in bytes. */
export function sizeOf(message) {
  let size = MESSAGE_SIZE + (message.header ? JSON.stringify(message.header).length : 0);
  for (const batch of Object.values(message.new)) {
    size += SESSION_SIZE;
    for (const tx of batch.newTransactions) {
      size += TRANSACTION_SIZE + (tx.encryptedChanges ?? tx.changes ?? "").length + (tx.meta ?? "").length;
    }
  }
  return size;
}
