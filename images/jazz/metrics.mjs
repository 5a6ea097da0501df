// Counters of the server, in the text format of Prometheus.
const HELP = {
  reside_jazz_connections: ["gauge", "Open connections."],
  reside_jazz_connections_total: ["counter", "Connections that were accepted."],
  reside_jazz_messages_total: ["counter", "Messages received."],
  reside_jazz_bytes_total: ["counter", "Characters received in frames."],
  reside_jazz_held_values: ["gauge", "Values of which content waits for a value that it depends on."],
  reside_jazz_refusals_total: ["counter", "Messages, sessions and connections that were refused, by reason."],
};

/** Counts events; reasons are constant sentences of this program, so that their number is bounded. */
export class Metrics {
  #values = new Map(Object.keys(HELP).filter((name) => name !== "reside_jazz_refusals_total").map((name) => [name, 0]));
  #refusals = new Map();

  /** Add to a counter or a gauge; the name is without its prefix. */
  add(name, amount = 1) {
    const full = `reside_jazz_${name}`;
    this.#values.set(full, this.#values.get(full) + amount);
  }

  /** Count a refusal. */
  refused(reason) {
    this.#refusals.set(reason, (this.#refusals.get(reason) ?? 0) + 1);
  }

  /** Return all values in the text format. */
  text() {
    const lines = [];
    for (const [name, [kind, help]] of Object.entries(HELP)) {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`);
      if (this.#values.has(name)) lines.push(`${name} ${this.#values.get(name)}`);
      else for (const [reason, count] of this.#refusals) lines.push(`${name}{reason=${JSON.stringify(reason)}} ${count}`);
    }
    return `${lines.join("\n")}\n`;
  }
}
