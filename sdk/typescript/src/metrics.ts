// Metrics as Prometheus text (docs/wire.md, section 8).
type Labels = Record<string, string>;
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const quoted = (value: string) => JSON.stringify(value);
const shown = (labels: Labels) =>
  Object.keys(labels).length === 0 ? "" : `{${Object.entries(labels).map(([k, v]) => `${k}=${quoted(v)}`).join(",")}}`;

/** A metric whose samples are numbers by labels: a counter or a gauge. */
export class Metric {
  protected readonly samples = new Map<string, number>();
  readonly name: string;
  readonly #help: string;
  readonly #type: string;

  constructor(name: string, help: string, type: "counter" | "gauge" | "histogram") {
    this.name = name;
    this.#help = help;
    this.#type = type;
  }

  add(labels: Labels, value = 1): void {
    const sample = this.name + shown(labels);
    this.samples.set(sample, (this.samples.get(sample) ?? 0) + value);
  }

  set(labels: Labels, value: number): void {
    this.samples.set(this.name + shown(labels), value);
  }

  text(): string {
    const lines = [...this.samples].map(([sample, value]) => `${sample} ${value}`);
    return [`# HELP ${this.name} ${this.#help}`, `# TYPE ${this.name} ${this.#type}`, ...lines, ""].join("\n");
  }
}

/** Durations in seconds, in the buckets of Prometheus' clients. */
export class Histogram extends Metric {
  /** By labels: how many durations are in each bucket and in none of those before, and their sum. */
  readonly #series = new Map<string, { labels: Labels; counts: number[]; sum: number }>();

  constructor(name: string, help: string) {
    super(name, help, "histogram");
  }

  observe(labels: Labels, seconds: number): void {
    const key = shown(labels);
    let series = this.#series.get(key);
    if (!series) this.#series.set(key, (series = { labels, counts: BUCKETS.map(() => 0).concat(0), sum: 0 }));
    const bucket = BUCKETS.findIndex((limit) => seconds <= limit);
    series.counts[bucket < 0 ? BUCKETS.length : bucket]! += 1;
    series.sum += seconds;
  }

  override text(): string {
    for (const [key, { labels, counts, sum }] of this.#series) {
      let count = 0;
      counts.forEach((more, index) => {
        const le = index < BUCKETS.length ? String(BUCKETS[index]) : "+Inf";
        this.samples.set(`${this.name}_bucket${shown({ ...labels, le })}`, (count += more));
      });
      this.samples.set(`${this.name}_sum${key}`, sum);
      this.samples.set(`${this.name}_count${key}`, count);
    }
    return super.text();
  }
}

/** The metrics of this process; a replica may push its own. */
export const metrics = {
  calls: new Metric("reside_rpc_calls_total", "RPC calls handled.", "counter"),
  seconds: new Histogram("reside_rpc_seconds", "Time to handle an RPC call."),
  grantsFailed: new Metric("reside_grant_failures_total", "Failed runs of a permission's handler.", "counter"),
  grantsPending: new Metric("reside_grants_pending", "Permissions not yet as expected.", "gauge"),
  lastPass: new Metric("reside_grants_last_pass_seconds", "Unix time of the last permission pass.", "gauge"),
  own: [] as Metric[],
};

export function metricsText(): string {
  const { own, ...all } = metrics;
  return [...Object.values(all), ...own].map((metric) => metric.text()).join("");
}
