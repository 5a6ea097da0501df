// One connection: its quota, what the gate holds of it, and the ids that it named.
import { Quota } from "./quota.mjs";

const OVER_QUOTA = 1008;
const MAX_NAMED = 50_000;

/** The state of one connection. */
export class Connection {
  #node;
  #websocket;
  #quota;
  #refused;
  #named = new Set();

  /**
   * @param {string} id the peer id
   * @param {object} node
   * @param {object} websocket
   * @param {Record<string, number>} quotas
   * @param {(reason: string, fields: object) => void} refused
   */
  constructor(id, node, websocket, quotas, refused) {
    this.id = id;
    this.held = new Map();
    this.heldBytes = 0;
    this.bridges = new Map();
    this.recalls = new Map();
    this.isClosed = false;
    this.#node = node;
    this.#websocket = websocket;
    this.#quota = new Quota(quotas);
    this.#refused = refused;
  }

  /** Use some of the quota; if it is exceeded, close the connection and return false. */
  takes(kind, amount = 1) {
    if (this.isClosed) return false;
    const reason = amount === 0 ? undefined : this.#quota.take(kind, amount);
    if (!reason) return true;
    this.isClosed = true;
    this.#refused(reason, { peer: this.id });
    this.#websocket.close(OVER_QUOTA, reason);
    return false;
  }

  /** Use the quota for new content; `sessions` has, as `count`, the number of known transactions of each session. */
  takesContent(isNewValue, sessions) {
    let added = 0;
    for (const { count } of sessions) if (count === 0) added += 1;
    return this.takes("values", isNewValue ? 1 : 0) && this.takes("sessions", added);
  }

  /** Note the id of a value that a message names. cojson keeps an entry for it for ever, even if there is no such value. */
  names(id) {
    if (this.#node.hasCoValue(id) && this.#node.getCoValue(id).isAvailable()) return;
    this.#named.add(id);
    if (this.#named.size > MAX_NAMED) this.forgetNamed();
  }

  /** Remove the entries of the named ids for which there is no value and for which nobody waits. */
  forgetNamed() {
    for (const id of this.#named) {
      if (!this.#node.isCoValueInMemory(id)) continue;
      const core = this.#node.getCoValue(id);
      if (!core.isAvailable() && core.listeners.size === 0 && core.dependant.size === 0) this.#node.internalDeleteCoValue(id);
    }
    this.#named.clear();
  }
}

/** Count new content on the way to cojson, for a server without a gate. */
export function countContent(node, connections) {
  const forward = node.syncManager.handleNewContent.bind(node.syncManager);
  node.syncManager.handleNewContent = (message, from) => {
    const connection = typeof from === "string" ? undefined : connections.get(from.id);
    if (connection) {
      const { verified } = node.getCoValue(message.id);
      const sessions = Object.keys(message.new).map((session) => ({ count: verified?.getTransactionsCount(session) ?? 0 }));
      if (!connection.takesContent(!verified && message.header !== undefined, sessions)) return;
    }
    forward(message, from);
  };
}
