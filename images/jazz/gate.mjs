// The gate: what a client sends reaches cojson only if it could count for readers (MODE=members).
//
// cojson calls `handleNewContent` of its sync manager with each content message, one after the other. The gate takes the
// place of this method. It judges each session of a message by the roles on this node (roles.mjs), and calls the original
// with the sessions that pass; a batch has one signature, so it is never cut. A refused session is reported to its sender
// as known: an honest client whose role was taken away then neither waits for it nor sends it again. If the session could
// count later, the sender is asked for it (recalls.mjs).
//
// A batch that depends on a value that this node does not have is held, within the bounds of the connection, and the
// value is requested from the sender. cojson would wait for it without a bound, and so would all later content of the
// value; it never gets such a batch.
import { RawGroup } from "cojson";
import { isWhole, loaded, requirements, undoDependencies } from "./requirements.mjs";
import { Pending, sizeOf } from "./pending.mjs";
import { Recalls } from "./recalls.mjs";
import { refusalOf } from "./roles.mjs";

const MAX_HELD_VALUES = 1000;
const MAX_HELD_BYTES = 16 * 1024 * 1024;
const MAX_WAITS = 10_000;
const MAX_BRIDGES = 1000;

const UNKNOWN = "a value that it depends on is unknown";
const MALFORMED = "it depends on something that is no value";
const TOO_MUCH = "too much content of the connection waits for other values";
const LONELY = "a header of a computable id came without content";
const UNVERIFIED = "its signature does not verify, or it deletes without permission";
const WRONG_HEADER = "a header belongs to another value";
const FAILED = "it can't be judged";

// The server has no role in any group and never writes. Groups would otherwise repair themselves as they are read.
RawGroup.prototype.migrate = () => {};

/** Judges what clients send; replaces a method of the node's sync manager. */
export class Gate {
  #node;
  #forward;
  #holdMs;
  #refused;
  #holds;
  #recalls;

  /**
   * @param {object} node
   * @param {Map<string, object>} connections by peer id
   * @param {number} holdMs how long content may wait for a value that it depends on
   * @param {(reason: string, fields: object) => void} refused called for each session or header that is refused
   * @param {(change: number) => void} holds called when the number of held values changes
   */
  constructor(node, connections, holdMs, refused, holds) {
    this.#node = node;
    this.#holdMs = holdMs;
    this.#refused = refused;
    this.#holds = holds;
    this.#recalls = new Recalls(node);
    this.#forward = node.syncManager.handleNewContent.bind(node.syncManager);
    node.syncManager.handleNewContent = (message, from) => {
      if (typeof from === "string") return void this.#forward(message, from); // from storage
      const connection = connections.get(from.id);
      if (connection && !connection.isClosed) this.#receive(message, from, connection);
    };
  }

  /** Drop what is held of a connection that ended. */
  disconnected(connection) {
    for (const pending of connection.held.values()) this.#release(pending);
    this.#recalls.disconnected(connection);
  }

  #receive(message, peer, connection) {
    const held = connection.held.get(message.id);
    if (held) {
      held.add(message);
      if (!this.#grow(held, message)) return;
    }
    this.#decide(held ?? new Pending(connection, peer, message), message);
  }

  /** Decide about all batches that can be decided now, and hold the rest; `isLast` if its time is over. */
  #decide(pending, message, isLast = false) {
    pending.isDue = false;
    try {
      const value = loaded(this.#node, pending.id);
      const waits = this.#pass(pending, value, isLast);
      if (waits === undefined) this.#finish(pending);
      else if (isLast) this.#refuseAll(pending, waits.length > 0 ? UNKNOWN : LONELY);
      else this.#hold(pending, message, waits);
    } catch (error) {
      this.#refuseAll(pending, FAILED, { error: String(error) });
    }
  }

  /** Forward what passes and refuse what can't; return the ids to wait for, or undefined if all is decided. */
  #pass(pending, value, isLast) {
    const header = value.verified?.header ?? pending.header;
    if (!header) return void this.#requestHeader(pending);
    pending.owner = header.ruleset.group;
    pending.ruleset = header.ruleset;
    const own = requirements(this.#node, value, header);
    if (!own) return void this.#refuse(pending, pending.entries, MALFORMED);
    if (value.isAvailable() && !isWhole(value)) own.missing.push(value.id);
    if (own.missing.length > 0) return own.missing;
    for (;;) {
      const heads = pending.heads().filter((entry) => this.#isNew(entry, pending, value));
      for (const entry of heads) this.#judge(entry, pending, value, header);
      const passing = heads.filter((entry) => !entry.reason && entry.missing.length === 0);
      if (passing.length > 0 || this.#passesAlone(pending, value, header)) {
        if (!this.#send(pending, value, header, own.needs, passing)) return undefined;
        continue;
      }
      if (heads.length === 0 && pending.entries.length > 0) continue; // later batches of sessions that were known
      const refused = heads.filter((entry) => entry.reason);
      const waits = heads.flatMap((entry) => entry.missing);
      if (!isLast && rolesMayCome(pending, value, waits)) return waits;
      if (refused.length > 0) this.#refuse(pending, refused);
      else return waits.length > 0 || (pending.isHeaderAlone && !value.isAvailable()) ? waits : undefined;
    }
  }

  /** Remove what is known of a batch, which nobody verifies; return whether something is left. */
  #isNew(entry, pending, value) {
    const { after, newTransactions } = entry.batch;
    const count = countOf(value, entry.session);
    entry.count = count;
    if (newTransactions.length > 0 && after >= count) return true;
    const left = newTransactions.slice(Math.max(count - after, 0));
    if (left.length > 0) entry.batch = { ...entry.batch, after: count, newTransactions: left };
    else pending.forget(entry);
    return left.length > 0;
  }

  /** Set why a batch is refused, or which ids it waits for. */
  #judge(entry, pending, value, header) {
    const { session, batch, count } = entry;
    const { bridges } = pending.connection;
    const key = `${value.id} ${session}`;
    const isBridge = (bridges.get(key) ?? 0) > count;
    entry.missing = [];
    entry.reason = isBridge ? undefined : refusalOf(value, header, session, batch.after, batch.newTransactions);
    if (entry.reason) return;
    if (batch.after > count) {
      // Earlier batches were refused, but this one counts. The sender is asked for them; then they pass, too.
      bridges.set(key, batch.after + batch.newTransactions.length);
      if (bridges.size > MAX_BRIDGES) bridges.delete(bridges.keys().next().value);
    } else if (!isBridge) bridges.delete(key);
    const own = requirements(this.#node, value, header, [session], [batch.newTransactions]);
    if (own) [entry.needs, entry.missing] = [own.needs, own.missing];
    else entry.reason = MALFORMED;
  }

  /** Anybody may create groups, and values of ids that nobody can compute: these may come without content. */
  #passesAlone(pending, value, header) {
    if (value.isAvailable() || header.ruleset.type === "group") return !value.isAvailable();
    if (!pending.isHeaderAlone || pending.entries.length > 0 || typeof header.createdAt !== "string") return false;
    return header.ruleset.type !== "ownedByGroup" || this.#node.getCoValue(header.ruleset.group).isGroupOrAccount();
  }

  /** Pass batches on to cojson; return whether the value exists then, and the connection may go on. */
  #send(pending, value, header, needs, entries) {
    const { connection, id, peer, priority } = pending;
    const isNew = !value.isAvailable();
    const content = {};
    const added = missingIn(value.dependencies, needs);
    for (const entry of entries) {
      content[entry.session] = entry.batch;
      added.push(...missingIn(value.dependencies, entry.needs));
    }
    pending.remove(entries);
    if (!connection.takesContent(isNew, entries)) return void (pending.entries = []);
    this.#forward({ action: "content", id, priority, header: isNew ? header : undefined, new: content }, peer);
    pending.isAnswered = true;
    if (isNew && !value.isAvailable()) {
      this.#refused(WRONG_HEADER, { peer: peer.id, id });
      undoDependencies(this.#node, value, added);
      return void (pending.entries = []);
    }
    if (added.length > 0 || value.isErroredInPeer(peer.id)) this.#undo(pending, value, needs, entries, added);
    if (header.ruleset.type === "group") this.#recalls.changed(id);
    return true;
  }

  /** Undo what cojson noted about batches before it refused them; a batch after a gap is asked for again. */
  #undo(pending, value, needs, entries, added) {
    const stored = new Set(needs);
    for (const entry of entries) {
      if (countOf(value, entry.session) > entry.count) for (const id of entry.needs) stored.add(id);
      else if (entry.batch.after === entry.count && !value.isDeleted) {
        this.#refused(UNVERIFIED, { peer: pending.peer.id, id: value.id, session: entry.session });
      }
    }
    undoDependencies(this.#node, value, added.filter((id) => !stored.has(id)));
  }

  #requestHeader(pending) {
    pending.entries = [];
    pending.isAnswered = true;
    this.#node.syncManager.requestFullContent(pending.id, pending.peer);
  }

  #hold(pending, message, waits) {
    const { connection, id, peer } = pending;
    if (!connection.held.has(id)) {
      connection.held.set(id, pending);
      this.#holds(1);
      if (!this.#grow(pending, message)) return;
    }
    if (waits.length > MAX_WAITS) return void this.#refuseAll(pending, TOO_MUCH);
    pending.limit(this.#holdMs, () => this.#decide(pending, undefined, true));
    for (const needed of new Set(waits)) {
      const core = this.#node.getCoValue(needed);
      connection.names(needed);
      if (pending.waitFor(core, () => this.#wake(pending)) && !core.isAvailable()) core.loadFromPeers([peer], "immediate");
    }
  }

  /** Account for another held message; refuse all of the value if the connection holds too much. */
  #grow(pending, message) {
    const { connection } = pending;
    const size = sizeOf(message);
    pending.size += size;
    connection.heldBytes += size;
    if (connection.held.size <= MAX_HELD_VALUES && connection.heldBytes <= MAX_HELD_BYTES) return true;
    this.#refuseAll(pending, TOO_MUCH);
    return false;
  }

  #wake(pending) {
    if (pending.isDue || pending.connection.held.get(pending.id) !== pending) return;
    pending.isDue = true;
    queueMicrotask(() => {
      if (pending.connection.held.get(pending.id) === pending) this.#decide(pending);
    });
  }

  #release(pending) {
    const { held } = pending.connection;
    pending.stop();
    if (held.get(pending.id) !== pending) return;
    held.delete(pending.id);
    pending.connection.heldBytes -= pending.size;
    this.#holds(-1);
    for (const other of held.values()) if (other.owner === pending.id) this.#wake(other);
  }

  #refuse(pending, entries, reason) {
    const { id, peer } = pending;
    for (const entry of entries) this.#refused(reason ?? entry.reason, { peer: peer.id, id, session: entry.session });
    if (pending.ruleset) this.#recalls.note(pending, entries);
    pending.refuse(entries);
  }

  #refuseAll(pending, reason, fields = {}) {
    const { entries, id, peer } = pending;
    if (entries.length === 0) this.#refused(reason, { peer: peer.id, id, ...fields });
    pending.refuse([]);
    for (const entry of entries) entry.reason ??= reason;
    this.#refuse(pending, entries);
    this.#finish(pending);
  }

  /** Release a value of which all is decided, and tell the sender what cojson did not tell it. */
  #finish(pending) {
    this.#release(pending);
    if (pending.isAnswered && !pending.refused) return;
    const { id, peer, refused } = pending;
    const value = this.#node.getCoValue(id);
    const known = pending.isAnswered || !value.isAvailable() || !pending.hasKnown ? {} : value.knownState().sessions;
    this.#node.syncManager.trySendToPeer(peer, { action: "known", id, header: true, sessions: { ...known, ...refused } });
    peer.trackToldKnownState(id);
  }
}

/** Return whether content that is on its way, or waits, may give roles to the authors of what does not pass now. */
function rolesMayCome(pending, value, waits) {
  const { connection, owner } = pending;
  if (owner !== undefined) return pending.entries.length > 0 && connection.held.has(owner);
  return value.isGroupOrAccount() && (waits.length > 0 || pending.expectsMore(value.knownState().sessions));
}

function countOf(value, session) {
  return value.verified?.getTransactionsCount(session) ?? 0;
}

function missingIn(known, ids) {
  const missing = [];
  for (const id of ids) if (!known.has(id)) missing.push(id);
  return missing;
}
