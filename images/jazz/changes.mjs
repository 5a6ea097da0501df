// Which changes of a group cojson 0.20.19 can read.
//
// It reads a group's changes before it knows whether their author has a role, and throws on a change that is no object or
// sets no key: one transaction of any client would make the group, and all that it owns, unreadable for JavaScript clients.

export const UNREADABLE_CHANGE = "a change of a group is malformed";

/** Return whether JavaScript clients can read a group that has a transaction. */
export function isReadableInGroup(transaction) {
  if (transaction.privacy !== "trusting") return true;
  const changes = parsed(transaction.changes);
  if (changes === undefined) return true; // it is no JSON, and does not count
  return Array.isArray(changes) && changes.every((change) => isObject(change) && (change.op !== "set" || typeof change.key === "string"));
}

/** Return what a JSON text contains; undefined if it is no JSON. */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isObject(value) {
  return typeof value === "object" && value !== null;
}
