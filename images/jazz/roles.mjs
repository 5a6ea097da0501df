// Whether a transaction could count for readers, decided by the functions of cojson 0.20.19 that its readers use.
//
// A transaction that exists only in a message is shown to them as a candidate: an object with the members that they read.
// Its verdict is noted; nothing is changed in the values of the node.
import { cojsonInternals } from "cojson";
import { isDeleteSessionID } from "cojson/dist/ids.js";
import { determineValidTransactions } from "cojson/dist/permissions.js";
import { parsed, UNREADABLE_CHANGE, isReadableInGroup } from "./changes.mjs";

const { accountOrAgentIDfromSessionID: authorOf, expectGroup } = cojsonInternals;
const PRIVILEGED = new Set(["admin", "manager", "adminInvite", "managerInvite", "writerInvite", "readerInvite", "writeOnlyInvite"]);

const NO_ROLE = "the author has no role by which it could count";
const NO_DELETION = "only an admin may delete a value";
const NO_GROUP = "its owner is not a group";

/** A transaction that is judged; cojson calls it like one of its own. */
class Candidate {
  #verdict;
  #isStripped = false;

  constructor(session, index, tx, verdict) {
    this.author = authorOf(session);
    this.currentMadeAt = this.madeAt = tx.madeAt;
    this.currentTxID = this.txID = { sessionID: session, txIndex: index };
    this.tx = tx;
    this.#verdict = verdict;
  }

  get meta() {
    return this.tx.privacy === "trusting" ? parsed(this.tx.meta) : undefined;
  }

  set meta(_) {
    // cojson reduces a reader's pointer to a branch to its two members.
  }

  get changes() {
    return this.tx.privacy === "trusting" ? parsed(this.tx.changes) : undefined;
  }

  set changes(_) {
    this.#isStripped = true; // a reader may write a pointer to a branch, and no changes with it
  }

  markValid() {
    if (!this.#isStripped || this.tx.changes === "[]") this.#verdict.counts = true;
  }

  markInvalid() {}
}

/**
 * Return why no transaction of a session's batch could count; undefined if one could. The owner of the value, and the
 * parents of a group, must be loaded.
 *
 * @param {object} core the value on this node; a group's needs no content yet
 * @param {object} header the header of the value
 * @param {string} session
 * @param {number} after number of transactions before the batch
 * @param {object[]} transactions
 */
export function refusalOf(core, header, session, after, transactions) {
  const { type } = header.ruleset;
  if (type === "unsafeAllowAll") return undefined;
  return type === "group"
    ? refusalInGroup(core, header, session, after, transactions)
    : refusalInOwned(core.node, header, session, after, transactions);
}

function refusalInOwned(node, header, session, after, transactions) {
  let group;
  try {
    group = expectGroup(node.expectCoValueLoaded(header.ruleset.group).getCurrentContent());
  } catch {
    return NO_GROUP;
  }
  if (isDeleteSessionID(session)) {
    const isAdmin = transactions.some((tx) => group.atTime(tx.madeAt).roleOfInternal(authorOf(session)) === "admin");
    return isAdmin ? undefined : NO_DELETION;
  }
  const verdict = { counts: false };
  const view = { node, verified: { header }, isAvailable: () => true, toValidateTransactions: untilOneCounts(session, after, transactions, verdict) };
  determineValidTransactions(view);
  return verdict.counts ? undefined : NO_ROLE;
}

function* untilOneCounts(session, after, transactions, verdict) {
  for (let index = 0; index < transactions.length && !verdict.counts; index += 1) {
    yield new Candidate(session, after + index, transactions[index], verdict);
  }
}

function refusalInGroup(core, header, session, after, transactions) {
  const author = authorOf(session);
  const isFirst = author === header.ruleset.initialAdmin;
  if (!transactions.every(isReadableInGroup)) return UNREADABLE_CHANGE;
  if (!core.isAvailable()) return isFirst ? undefined : NO_ROLE;
  const group = expectGroup(core.getCurrentContent());
  const roles = transactions.map((tx) => roleAt(group, author, tx.madeAt));
  if (roles.some((role) => PRIVILEGED.has(role))) return undefined;
  const candidates = transactions.filter((tx, index) => isFirst || isForMembers(group, author, tx, roles[index]));
  if (candidates.length === 0) return NO_ROLE;
  return couldCountInGroup(core, header, session, after, candidates) ? undefined : NO_ROLE;
}

// For cojson whoever is no member may revoke its own role, and set and reveal a key of its own. A role of its own exists
// only for members. A key matters if everyone may write with such a key, or if the group has no sealer: then it is how the
// admin of another group extends that one by this one.
function isForMembers(group, author, tx, role) {
  const direct = group.atTime(tx.madeAt).get(author) ?? group.atTime(tx.madeAt - 1).get(author);
  if (direct !== undefined && direct !== "revoked") return true;
  const isKeyOfUse = role === "writeOnly" || (group.core.isGroup() && !group.get("groupSealer"));
  return isKeyOfUse && parsed(tx.changes)?.[0]?.key !== author;
}

// What an admin writes in the millisecond of its removal counts in one of the two orders.
function roleAt(group, author, madeAt) {
  return group.atTime(madeAt).roleOfInternal(author) ?? group.atTime(madeAt - 1).roleOfInternal(author);
}

// Members may revoke themselves and reveal the key that they write with. cojson judges a group as a whole.
function couldCountInGroup(core, header, session, after, transactions) {
  const verdict = { counts: false };
  const existing = core.verifiedTransactions.map((tx) => Object.assign(Object.create(tx), { markValid() {}, markInvalid() {} }));
  const candidates = transactions.map((tx, index) => new Candidate(session, after + index, tx, verdict));
  const view = {
    id: core.id,
    node: core.node,
    verified: { header },
    verifiedTransactions: [...existing, ...candidates],
    isAvailable: () => true,
    isGroup: () => core.isGroup(),
    compareTransactions: core.compareTransactions,
  };
  try {
    determineValidTransactions(view);
  } catch {
    return verdict.counts; // a parent that is not loaded: it matters only to those whose role suffices
  }
  return verdict.counts;
}
