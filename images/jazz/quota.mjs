// The quota of one connection: how many messages, bytes, new values and new sessions it may send within a minute.
const WINDOW_MS = 60_000;

/** Counts what a connection sends. */
export class Quota {
  #limits;
  #used = new Map();
  #began = performance.now();

  /** @param {Record<string, number>} limits by kind; 0 for none */
  constructor(limits) {
    this.#limits = limits;
  }

  /** Use an amount; return the reason if the quota is exceeded. */
  take(kind, amount = 1) {
    const limit = this.#limits[kind];
    if (limit === 0) return undefined;
    const now = performance.now();
    if (now - this.#began >= WINDOW_MS) {
      this.#began = now;
      this.#used.clear();
    }
    const used = (this.#used.get(kind) ?? 0) + amount;
    this.#used.set(kind, used);
    return used > limit ? `over the quota of ${kind}` : undefined;
  }
}
