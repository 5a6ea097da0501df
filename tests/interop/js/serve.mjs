// What all drivers share: requests in, responses out, one JSON object a line. Logs go to stderr.
import { createInterface } from "node:readline";
import { inspect } from "node:util";

for (const method of ["log", "info", "debug", "warn", "error"]) {
  console[method] = (...parts) => process.stderr.write(`${inspect(parts)}\n`);
}

export function serve(operations) {
  const lines = createInterface({ input: process.stdin });
  lines.on("line", async (line) => {
    const { id, op, args } = JSON.parse(line);
    let answer;
    try {
      answer = { id, result: (await operations[op](args)) ?? null };
    } catch (error) {
      answer = { id, error: error?.stack ?? String(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  });
  lines.on("close", () => process.exit(0));
  process.stdout.write('{"id":0,"result":"ready"}\n');
}
