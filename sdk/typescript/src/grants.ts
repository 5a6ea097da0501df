// The permission loop: make current grants equal to expected ones, and publish them (docs/wire.md, section 4).
import type { RawCoMap } from "cojson";
import { ResideError, textOf } from "./errors.ts";
import { log } from "./logs.ts";
import { metrics } from "./metrics.ts";
import type { Context } from "./context.ts";
import { grantedPermissions, inForce, isEqual, keyOf, nextAct, NOT_GRANTED } from "./permissions.ts";
import type { Act, Entry, Grant, PermissionRef } from "./permissions.ts";
import { findUnique, loadMap, now, targetOf } from "./values.ts";

const HANDLER_MS = 60_000;

/** Carries out one change of a permission. It must be idempotent. */
export type PermissionHandler = (context: Context, ref: PermissionRef, grant: Grant) => Promise<void> | void;

/** Handlers of a permission; without `updated`, `granted` is called with the new params. */
export type PermissionHandlers = Partial<Record<Act, PermissionHandler>>;

/** Returns the handlers of a permission; undefined if it is not in the replica's contracts. */
export type HandlersOf = (ref: PermissionRef) => PermissionHandlers | undefined;

/** Runs until it is stopped. Grantees are handled side by side; each has one pass at a time. */
export class PermissionLoop {
  readonly #context: Context;
  readonly #handlersOf: HandlersOf;
  readonly #running = new Map<string, Promise<void>>();
  readonly #due = new Set<string>();
  readonly #failed = new Map<string, number>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #unsubscribe: (() => void) | undefined;
  #incomplete = 0;
  #stopped = false;

  constructor(context: Context, handlersOf: HandlersOf) {
    this.#context = context;
    this.#handlersOf = handlersOf;
  }

  start(): void {
    this.#unsubscribe = this.#context.block.onChange(() => void this.#look());
    void this.#look();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unsubscribe?.();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    await Promise.all(this.#running.values());
  }

  async #look(): Promise<void> {
    const { block } = this.#context;
    let isComplete = false;
    try {
      const isLoaded = await block.refresh();
      for (const account of new Set(block.entries().map((entry) => entry.ref.account))) this.#add(account);
      isComplete = isLoaded;
    } catch (error) {
      log("error", "the control block can't be read", { error: textOf(error) });
    }
    this.#incomplete = isComplete ? 0 : this.#incomplete + 1;
    if (!isComplete) this.#again("", this.#incomplete, () => void this.#look());
  }

  #add(account: string): void {
    this.#due.add(account);
    if (this.#stopped || this.#running.has(account)) return;
    const run = async () => {
      while (this.#due.delete(account) && !this.#stopped) await this.#pass(account);
      this.#running.delete(account);
    };
    this.#running.set(account, run());
  }

  async #pass(account: string): Promise<void> {
    const { name } = this.#context;
    let failures = 0;
    try {
      failures = await this.#carryOutAll(account);
      await publish(this.#context, account);
    } catch (error) {
      failures += 1;
      log("warning", "grants can't be compared or published", { account, error: textOf(error) });
    }
    metrics.lastPass.set({ replica: name }, Date.now() / 1000);
    this.#failed.set(account, failures === 0 ? 0 : (this.#failed.get(account) ?? 0) + 1);
    metrics.grantsPending.set({ replica: name }, [...this.#failed.values()].filter((count) => count > 0).length);
    if (failures > 0) this.#again(account, this.#failed.get(account)!, () => this.#add(account));
  }

  /** Carry out what is due for a grantee, revocations first; return how many steps failed. */
  async #carryOutAll(account: string): Promise<number> {
    const entries = this.#context.block.entries().filter((entry) => entry.ref.account === account);
    const steps = entries.flatMap((entry) => {
      const act = nextAct(entry, this.#handlersOf(entry.ref) !== undefined);
      return act ? [{ entry, act }] : [];
    });
    steps.sort((one, other) => Number(one.act !== "revoked") - Number(other.act !== "revoked"));
    if (steps.some(({ act }) => act === "revoked")) await publish(this.#context, account);
    let failures = 0;
    for (const { entry, act } of steps) failures += Number(!(await this.#try(entry, act)));
    return failures;
  }

  #again(key: string, attempts: number, run: () => void): void {
    clearTimeout(this.#timers.get(key));
    const wait = Math.min(60_000, 1_000 * 2 ** Math.min(attempts - 1, 6));
    if (!this.#stopped) this.#timers.set(key, setTimeout(run, wait));
  }

  async #try(entry: Entry, act: Act): Promise<boolean> {
    const { name } = this.#context;
    const permission = keyOf(entry.ref);
    let done: boolean;
    try {
      done = await this.#carryOut(entry, act);
    } catch (error) {
      metrics.grantsFailed.add({ replica: name });
      // The error of a handler may contain a secret, so only its kind is logged, unless it is ours.
      const reason = error instanceof ResideError ? error.message : error instanceof Error ? error.name : typeof error;
      log("error", "permission not carried out", { permission, act, error: reason });
      return false;
    }
    if (done) log("info", "permission carried out", { permission, act });
    return true;
  }

  /** Return whether this pod has done it; else it is no longer due, because another pod has. */
  async #carryOut({ ref, expected }: Entry, act: Act): Promise<boolean> {
    const { block } = this.#context;
    const handlers = this.#handlersOf(ref);
    const grant = handlers ? expected : NOT_GRANTED;
    return this.#context.transaction(`grant/${block.root.id}/${ref.account}`, async (transaction) => {
      await block.refresh();
      const found = block.find(ref);
      if (!found || nextAct(found, handlers !== undefined) !== act || !isEqual(found.expected, expected)) return false;
      const handler = handlers?.[act] ?? (act === "updated" ? handlers?.granted : undefined);
      if (handler) await within(HANDLER_MS, Promise.resolve(handler(this.#context, ref, grant)));
      transaction.stage(() => block.setCurrent(ref, grant));
      return true;
    });
  }
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ResideError("not-ready", `the handler took more than ${ms / 1000} s`)), ms);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** Publish to a grantee what is in force for it. */
async function publish(context: Context, account: string): Promise<void> {
  const entries = context.block.entries().filter((entry) => entry.ref.account === account && inForce(entry));
  const granted = new Map(entries.map((entry) => [keyOf(entry.ref), entry.expected.params]));
  const published = await findPublished(context, account, granted.size > 0);
  if (!published) return;
  const before = now(published);
  for (const key of before.keys()) if (!granted.has(key)) before.delete(key);
  for (const [key, params] of granted) if (!isEqual(before.get(key), params)) before.set(key, params);
}

async function findPublished(context: Context, account: string, create: boolean): Promise<RawCoMap | undefined> {
  const name = grantedPermissions(account);
  const pointer = await findUnique(context.node, context.public.id, name);
  const target = pointer && targetOf(now(pointer));
  if (target !== undefined) return loadMap(context.node, target);
  if (!create) return undefined;
  const group = context.node.createGroup();
  group.addMember(await context.loadAccount(account), "reader");
  const published = group.createMap({});
  const made = pointer ?? context.public.createMap({}, null, "private", { uniqueness: name }, { fww: "init" });
  now(made).assign({ target: published.id, value: published.id });
  return published;
}
