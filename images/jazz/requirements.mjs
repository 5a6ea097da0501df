// Which values a batch depends on, by cojson's own rules, and which of them this node does not have.
import { cojsonInternals } from "cojson";
import { isValueId } from "./shape.mjs";

const { getDependedOnCoValuesFromRawData: dependenciesOf } = cojsonInternals;
const whole = new WeakSet();

/**
 * Return the values that a header, sessions and transactions depend on.
 *
 * @param {object} node
 * @param {object} value
 * @param {object} header
 * @param {string[]} sessions
 * @param {object[][]} transactions
 * @returns {{needs: Set<string>, missing: string[]} | undefined} undefined if one of them can't be the id of a value
 */
export function requirements(node, value, header, sessions = [], transactions = []) {
  const needs = dependenciesOf(value.id, header, sessions, transactions);
  const missing = [];
  for (const id of needs) {
    if (!isValueId(id)) return undefined;
    const core = loaded(node, id);
    if (!(id === header.ruleset.group || core.isGroup() ? isWhole(core) : core.isAvailable())) missing.push(id);
  }
  return { needs, missing };
}

/** Return a value, loaded from storage if it is there. A large one is not complete at once. */
export function loaded(node, id) {
  const core = node.getCoValue(id);
  if (!core.isAvailable()) core.loadFromStorage();
  return core;
}

/** Return whether all that storage has of a value is loaded; of a group, with its parents and members. */
export function isWhole(core) {
  if (!whole.has(core)) {
    if (!core.isAvailable() || core.isStreaming()) return false;
    whole.add(core);
  }
  return core.incompleteDependencies.size === 0 || !core.isGroup();
}

/** Remove dependencies that cojson noted before it refused what they came with. */
export function undoDependencies(node, value, ids) {
  for (const id of ids) {
    value.dependencies.delete(id);
    value.missingDependencies.delete(id);
    value.incompleteDependencies.delete(id);
    node.getCoValue(id).dependant.delete(value.id);
  }
}
