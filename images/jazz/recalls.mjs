// Asks for refused sessions again. A transaction that did not count can count later: an admin gives its author a role that
// is dated before it, or the role and the transaction came over different connections. Its sender believes that the server
// has it, so a change of the owning group, or of a parent, brings a correction.
import { refusalOf } from "./roles.mjs";

const MAX_OF_CONNECTION = 100;
const MAX_TIMES = 8;
const DELAY_MS = 100;

/** The refused sessions that connections sent, by owner. */
export class Recalls {
  #node;
  #byOwner = new Map();
  #changed = new Set();
  #timer;

  constructor(node) {
    this.#node = node;
  }

  /** Note refused batches of a value; of each only some of its times are kept. */
  note(pending, entries) {
    const { connection, id, peer, ruleset } = pending;
    const owner = ruleset.type === "group" ? id : ruleset.group;
    for (const { session, batch } of entries) {
      const key = `${id} ${session}`;
      const times = connection.recalls.get(key)?.times ?? new Set();
      for (const tx of [batch.newTransactions.at(-1), ...batch.newTransactions]) if (tx && times.size < MAX_TIMES) times.add(tx.madeAt);
      const record = { key, id, session, times, ruleset, owner, peer, connection };
      this.#forget(connection.recalls.get(key));
      connection.recalls.set(key, record);
      if (!this.#byOwner.has(owner)) this.#byOwner.set(owner, new Set());
      this.#byOwner.get(owner).add(record);
      if (connection.recalls.size > MAX_OF_CONNECTION) this.#forget(connection.recalls.values().next().value);
    }
  }

  /** Note that a group changed; the sessions are asked for a moment later. */
  changed(group) {
    if (this.#byOwner.size === 0) return;
    this.#changed.add(group);
    this.#timer ??= setTimeout(() => this.#recall(), DELAY_MS);
  }

  /** Forget the refused sessions of a connection that ended. */
  disconnected(connection) {
    for (const record of [...connection.recalls.values()]) this.#forget(record);
  }

  #recall() {
    this.#timer = undefined;
    const owners = this.#changed; // grows while it is iterated: the groups that depend on a changed group
    this.#changed = new Set();
    for (const owner of owners) {
      for (const id of this.#node.getCoValue(owner).dependant) if (this.#node.getCoValue(id).isGroup()) owners.add(id);
      const values = new Map();
      for (const record of this.#byOwner.get(owner) ?? []) if (this.#couldCount(record)) values.set(`${record.connection.id} ${record.id}`, record);
      for (const record of values.values()) this.#ask(record);
    }
  }

  #couldCount({ id, session, times, ruleset }) {
    const transactions = [...times].map((madeAt) => ({ privacy: "private", madeAt }));
    return refusalOf(this.#node.getCoValue(id), { ruleset }, session, 0, transactions) === undefined;
  }

  #ask({ id, peer, connection }) {
    for (const record of [...connection.recalls.values()]) if (record.id === id) this.#forget(record);
    const known = this.#node.getCoValue(id).knownState();
    this.#node.syncManager.trySendToPeer(peer, { action: "known", isCorrection: true, ...known });
  }

  #forget(record) {
    if (!record) return;
    const { key, owner, connection } = record;
    const records = this.#byOwner.get(owner);
    connection.recalls.delete(key);
    records?.delete(record);
    if (records?.size === 0) this.#byOwner.delete(owner);
  }
}
