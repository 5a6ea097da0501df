// Waits for a state of a map end with their signal, and leave no subscription behind.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RawCoMap } from "cojson";
import { until } from "../src/values.ts";

/** A map that counts its subscriptions, and tells them a state at once. */
function fakeMap(): { map: RawCoMap; subscribed: () => number } {
  const listeners = new Set<(state: RawCoMap) => void>();
  const map = {
    core: { getCurrentContent: () => map },
    subscribe: (listener: (state: RawCoMap) => void) => {
      listeners.add(listener);
      listener(map);
      return () => void listeners.delete(listener);
    },
  } as unknown as RawCoMap;
  return { map, subscribed: () => listeners.size };
}

const aborted = (error: Error): boolean => error.message.includes("was aborted");

test("a wait that is aborted ends, also if it was aborted before it began", async () => {
  const { map, subscribed } = fakeMap();
  const end = new AbortController();
  const waiting = until(map, () => undefined, end.signal);
  end.abort();
  await assert.rejects(waiting, aborted);
  await assert.rejects(until(map, () => undefined, end.signal), aborted);
  assert.equal(subscribed(), 0);
});

test("a wait whose look fails ends with the error", async () => {
  const { map, subscribed } = fakeMap();
  const failing = until(map, () => {
    throw new Error("refused");
  });
  await assert.rejects(failing, /refused/);
  await Promise.resolve();
  assert.equal(subscribed(), 0);
});
