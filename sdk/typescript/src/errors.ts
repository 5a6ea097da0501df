// Errors with their codes on the wire (docs/wire.md, section 5). A message contains no secret.

/** HTTP status of each code. */
export const STATUSES = {
  "invalid-input": 400,
  "invalid-manifest": 400,
  "invalid-name": 400,
  "load-refused": 400,
  unauthenticated: 401,
  "not-allowed": 403,
  "not-found": 404,
  conflict: 409,
  error: 500,
  "not-ready": 503,
  "not-serving": 503,
} as const;

/** The stable name of an error. */
export type Code = keyof typeof STATUSES;

/** An error that reaches the caller of a method with its code and message. */
export class ResideError extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = this.constructor.name;
    this.code = code;
  }
}

/** A call was sent, but no answer arrived: it may have been carried out. */
export class AnswerLost extends ResideError {}

/** Return the error that a peer reported; an unknown code is `error`. */
export function fromWire(code: unknown, message: unknown): ResideError {
  const isKnown = typeof code === "string" && Object.hasOwn(STATUSES, code) && code !== "not-serving";
  return new ResideError(isKnown ? (code as Code) : "error", String(message));
}

/** Return the text of any error. */
export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
