// JSON logs on standard output, one object a line (docs/wire.md, section 8).
let replica = "";

/** Name the replica in all following lines. */
export function nameLogs(name: string): void {
  replica = name;
}

/** Write one line. Never pass a secret. */
export function log(level: "info" | "warning" | "error", event: string, fields: Record<string, unknown> = {}): void {
  const line = { replica, ...fields, event, level, timestamp: new Date().toISOString() };
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
