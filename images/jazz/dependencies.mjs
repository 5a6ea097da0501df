// Holds content back until the values that it depends on are here: the owner, parents and members of a group, accounts of
// authors.
//
// cojson 0.20.19 notes the dependencies of a content message with its value before it verifies anything, and then handles
// nothing more about this value until all of them are available. So one message of any client that names an account that
// does not exist would stop a value for all clients. Here, only what has such a dependency waits: a session, or the whole
// message if its header has it. It waits with its connection, for a limited time, and a connection has limits.
import { getDependenciesFromContentMessage } from "./node_modules/cojson/dist/coValueCore/utils.js";
import { UNREADABLE_CHANGE, isReadableInGroup } from "./changes.mjs";

const WAIT_MS = 30_000;
const MAX_PARTS = 256;
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_UNKNOWN = 1024;

/**
 * Part of a content message that waits.
 *
 * @typedef {{ message: object, key: string, unknown: Set<string>, bytes: number, deadline: NodeJS.Timeout }} Part
 */

/** Puts itself between a node's sync manager and the content that it handles. */
export class Dependencies {
  #node;
  #handle;
  #connections = new Map();
  #waitMs;

  /**
   * @param {import("cojson").LocalNode} node the server's node
   * @param {(peer: string, reason: string, fields: object) => void} refuse called for what is refused
   * @param {{ waitMs?: number }} settings how long content waits for a dependency
   */
  constructor(node, refuse, { waitMs = WAIT_MS } = {}) {
    this.#node = node;
    this.#waitMs = waitMs;
    const manager = node.syncManager;
    this.#handle = manager.handleNewContent.bind(manager);
    manager.handleNewContent = (message, from) => {
      if (typeof from === "string") return this.#handle(message, from); // from storage
      return this.#connection(from, refuse).admit(message);
    };
  }

  #connection(peer, refuse) {
    let connection = this.#connections.get(peer.id);
    if (!connection) {
      const pass = (message) => this.#handle(message, peer);
      connection = new Connection(this.#node, peer, pass, (reason, fields) => refuse(peer.id, reason, fields), this.#waitMs);
      this.#connections.set(peer.id, connection);
      peer.addCloseListener(() => {
        this.#connections.delete(peer.id);
        connection.close();
      });
    }
    return connection;
  }
}

/** The content of one connection that waits. */
class Connection {
  #node;
  #peer;
  #pass;
  #refuse;
  #waitMs;
  #bytes = 0;
  #parts = new Set();
  #loading = new Map(); // id of a value that is read from the database → messages about it
  #awaited = new Map(); // id of an unknown value → the function that ends its subscription

  constructor(node, peer, pass, refuse, waitMs) {
    this.#node = node;
    this.#peer = peer;
    this.#pass = pass;
    this.#refuse = refuse;
    this.#waitMs = waitMs;
  }

  /** Pass on what of a content message has all dependencies, and hold the rest. */
  admit(message) {
    const { id, header } = message;
    const core = this.#node.getCoValue(id);
    if (!header && !core.isAvailable() && this.#loadsFirst(core, message)) return;
    const unknown = this.#unknown(core, { ...message, new: {} });
    if (unknown.size > 0 || this.#waits(id)) return this.#hold(message, id, unknown);
    const ready = {};
    const isGroup = (header ?? core.verified?.header)?.ruleset.type === "group";
    for (const [session, batch] of Object.entries(message.new)) {
      if (isGroup && !batch.newTransactions.every(isReadableInGroup)) {
        this.#refuse(UNREADABLE_CHANGE, { id, session });
        continue;
      }
      const part = { ...message, new: { [session]: batch } };
      const unknown = this.#unknown(core, part);
      if (unknown.size > 0 || this.#waits(`${id} ${session}`)) this.#hold(part, `${id} ${session}`, unknown);
      else ready[session] = batch;
    }
    if (header || Object.keys(ready).length > 0) this.#pass({ ...message, new: ready });
  }

  /** Load a value that may be in the database: the dependencies of its content follow from its header. */
  #loadsFirst(core, message) {
    const queue = this.#loading.get(core.id);
    if (queue) return queue.push(message);
    if (core.getLoadingStateForPeer("storage") === "unavailable") return false;
    this.#loading.set(core.id, [message]);
    core.loadFromStorage(() => {
      const messages = this.#loading.get(core.id) ?? [];
      this.#loading.delete(core.id);
      for (const message of messages) this.admit(message);
    });
    return true;
  }

  /** Drop everything. */
  close() {
    this.#loading.clear();
    for (const part of [...this.#parts]) this.#drop(part);
  }

  #unknown(core, message) {
    const dependencies = getDependenciesFromContentMessage(core, message);
    return new Set([...dependencies].filter((id) => !this.#node.getCoValue(id).isAvailable()));
  }

  /** Return whether a part with a key waits: what comes after it has to wait, too. */
  #waits(key) {
    return this.#parts.size > 0 && [...this.#parts].some((part) => part.key === key);
  }

  #hold(message, key, unknown) {
    for (const part of this.#parts) if (part.key === key) part.unknown.forEach((id) => unknown.add(id));
    const bytes = JSON.stringify(message).length;
    const fields = { id: message.id, dependency: [...unknown][0] };
    if (this.#parts.size >= MAX_PARTS || this.#bytes + bytes > MAX_BYTES || unknown.size + this.#awaited.size > MAX_UNKNOWN) {
      return this.#refuse("too much content waits for unknown values", fields);
    }
    const part = { message, key, unknown, bytes, deadline: undefined };
    part.deadline = setTimeout(() => {
      this.#refuse("content depends on an unknown value", fields);
      this.#drop(part);
    }, this.#waitMs).unref();
    this.#bytes += bytes;
    this.#parts.add(part);
    for (const id of unknown) this.#load(id);
  }

  /** Load an unknown value from the database, else from this connection, and wait for it. */
  #load(id) {
    if (this.#awaited.has(id)) return;
    const core = this.#node.getCoValue(id);
    const look = () => core.isAvailable() && this.#arrived(id);
    this.#awaited.set(id, core.subscribe(look, false));
    core.loadFromStorage((found) => {
      if (!found && this.#awaited.has(id)) core.loadFromPeers([this.#peer], "immediate");
      else look();
    });
  }

  #arrived(id) {
    this.#stop(id);
    for (const part of [...this.#parts]) {
      if (!part.unknown.delete(id) || part.unknown.size > 0) continue;
      this.#drop(part);
      this.#pass(part.message);
    }
  }

  #drop(part) {
    clearTimeout(part.deadline);
    if (!this.#parts.delete(part)) return;
    this.#bytes -= part.bytes;
    for (const id of part.unknown) if (![...this.#parts].some((other) => other.unknown.has(id))) this.#stop(id);
  }

  #stop(id) {
    this.#awaited.get(id)?.();
    this.#awaited.delete(id);
  }
}
