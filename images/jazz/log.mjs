// The log: one JSON object in each line of stdout. Warnings and errors of one kind are limited, because clients cause
// most of them, and a flood of refusals must not become a flood of lines.
const LINES = 20;
const WINDOW_MS = 10_000;
const MAX_KINDS = 500;
const KIND_WORDS = 3;

const windows = new Map();

/**
 * Write a line. Of warnings and errors of one kind at most `LINES` are written in `WINDOW_MS`; the next line of that kind
 * then says how many were suppressed.
 *
 * @param {"debug" | "info" | "warning" | "error"} level
 * @param {string} message its first words, and the reason in `fields`, are its kind
 */
export function log(level, message, fields = {}) {
  const suppressed = level === "warning" || level === "error" ? admit(message, fields.reason) : 0;
  if (suppressed < 0) return;
  const more = suppressed > 0 ? { suppressed } : {};
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), level, message, ...fields, ...more })}\n`);
}

/** Return how many lines of this kind were suppressed before this one; -1 to suppress this one, too. */
function admit(message, reason = "") {
  const kind = `${message.split(" ", KIND_WORDS).join(" ")} ${reason}`;
  const now = performance.now();
  const known = windows.get(kind);
  if (known && now - known.began < WINDOW_MS) {
    if (known.lines < LINES) {
      known.lines += 1;
      return 0;
    }
    known.suppressed += 1;
    return -1;
  }
  if (!known && windows.size >= MAX_KINDS) windows.clear();
  windows.set(kind, { began: now, lines: 1, suppressed: 0 });
  return known?.suppressed ?? 0;
}

/** Redirect the console, to which cojson and its transport write, into the log. */
export function redirectConsole() {
  for (const [method, level] of [["log", "info"], ["info", "info"], ["debug", "debug"], ["warn", "warning"], ["error", "error"]]) {
    console[method] = (...parts) => log(level, parts.map(asText).join(" "));
  }
}

function asText(part) {
  if (typeof part === "string") return part;
  if (part instanceof Error) return part.stack ?? part.message;
  if (part?.err instanceof Error) return part.err.message;
  try {
    return JSON.stringify(part);
  } catch {
    return String(part);
  }
}
