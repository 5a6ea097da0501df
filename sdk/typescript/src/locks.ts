// Locks in etcd through its JSON gateway (docs/wire.md, section 7).
import { hostname } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { ResideError, textOf } from "./errors.ts";
import { log } from "./logs.ts";

const REQUEST_MS = 5_000;
const RECHECK_MS = 10_000;
const base64 = (text: string) => Buffer.from(text).toString("base64");
type Json = Record<string, unknown>;

/** The value of a key, its revisions and its lease. */
export interface KeyValue {
  value: string;
  createRevision: string;
  modRevision: string;
  lease: string;
}

/** Result of a transaction: whether its comparisons were true, the entry that it read, and the store's revision. */
export interface Outcome {
  succeeded: boolean;
  entry: KeyValue | undefined;
  revision: string;
}

/** The bodies of the requests to etcd. */
export const requests = {
  grant: (ttl: number): Json => ({ TTL: String(ttl) }),
  lease: (id: string): Json => ({ ID: id }),
  create: (key: string, value: string, lease: string): Json =>
    txn(key, [compare(key, "CREATE", "create_revision", "0")], [put(key, value, lease)]),
  confirm: (key: string, revision: string, lease: string): Json => txn(key, held(key, revision, lease), []),
  touch: (key: string, value: string, revision: string, lease: string): Json =>
    txn(key, held(key, revision, lease), [put(key, value, lease)]),
  deleteUnchanged: (key: string, modRevision: string): Json => {
    const deletion = { requestDeleteRange: { key: base64(key) } };
    return txn(key, [compare(key, "MOD", "mod_revision", modRevision)], [deletion]);
  },
  watch: (key: string, after: string): Json => ({
    create_request: { key: base64(key), start_revision: String(BigInt(after) + 1n), filters: ["NOPUT"] },
  }),
};

function txn(key: string, comparisons: Json[], success: Json[]): Json {
  const read = { requestRange: { key: base64(key) } };
  return { compare: comparisons, success: [...success, read], failure: [read] };
}

function compare(key: string, target: string, member: string, value: string): Json {
  return { key: base64(key), target, result: "EQUAL", [member]: value };
}

function held(key: string, revision: string, lease: string): Json[] {
  return [compare(key, "CREATE", "create_revision", revision), compare(key, "LEASE", "lease", lease)];
}

function put(key: string, value: string, lease: string): Json {
  return { requestPut: { key: base64(key), value: base64(value), lease } };
}

/** Read the answer to a transaction. */
export function outcomeOf(answer: Json): Outcome {
  const responses = answer.responses as { response_range?: { kvs?: Record<string, string>[] } }[];
  const found = responses.at(-1)?.response_range?.kvs?.[0];
  const entry = found && {
    value: Buffer.from(found.value ?? "", "base64").toString(),
    createRevision: found.create_revision ?? "0",
    modRevision: found.mod_revision ?? "0",
    lease: found.lease ?? "0",
  };
  return { succeeded: answer.succeeded === true, entry, revision: (answer.header as { revision: string }).revision };
}

type User = { name: string; password: string };

/** Locks of one account. */
export class Locks {
  readonly holder: string;
  #hosts: string[];
  #token: string | undefined;
  readonly #space: string;
  readonly #user: () => Promise<User | undefined>;

  constructor(hosts: string[], space: string, name: string, user: () => Promise<User | undefined>) {
    this.#hosts = hosts;
    this.#space = space;
    this.#user = user;
    this.holder = `${name} on ${hostname()}`;
  }

  keyOf(name: string): string {
    return `reside/${this.#space}/${name}`;
  }

  /** Hold a lock while `work` runs. */
  async with<T>(name: string, work: (lock: Held) => Promise<T>, { ttl = 30, waitMs = 45_000 } = {}): Promise<T> {
    const lock = await this.#take(this.keyOf(name), ttl, Date.now() + waitMs);
    const renewal = lock.keepAlive();
    try {
      return await work(lock);
    } finally {
      lock.release();
      await renewal;
      await this.post("/v3/lease/revoke", requests.lease(lock.lease)).catch((error: unknown) => {
        log("warning", "lock not released; it ends when its lease expires", { key: lock.key, error: textOf(error) });
      });
    }
  }

  async #take(key: string, ttl: number, deadline: number): Promise<Held> {
    let seen: { modRevision: string; until: number } | undefined;
    for (;;) {
      const askedAt = performance.now();
      const lease = (await this.post("/v3/lease/grant", requests.grant(ttl))).ID as string;
      const { succeeded, entry, revision } = await this.txn(requests.create(key, this.holder, lease));
      if (entry && (succeeded || entry.lease === lease)) {
        return new Held(this, key, entry.createRevision, lease, ttl, askedAt);
      }
      await this.post("/v3/lease/revoke", requests.lease(lease));
      if (Date.now() >= deadline) {
        throw new ResideError("not-ready", `lock ${key} is held by ${entry?.value ?? "an unknown holder"}: try again`);
      }
      if (entry && seen?.modRevision === entry.modRevision && performance.now() > seen.until) {
        await this.txn(requests.deleteUnchanged(key, entry.modRevision));
        continue;
      }
      if (entry && seen?.modRevision !== entry.modRevision) {
        const { grantedTTL } = await this.post("/v3/lease/timetolive", requests.lease(entry.lease));
        seen = { modRevision: entry.modRevision, until: performance.now() + 1000 * Number(grantedTTL ?? 0) };
      }
      const left = Math.max((seen?.until ?? 0) - performance.now(), 0) + 100;
      await this.#untilDeleted(key, revision, Math.min(RECHECK_MS, left, Math.max(deadline - Date.now(), 1)));
    }
  }

  async #untilDeleted(key: string, after: string, ms: number): Promise<void> {
    const signal = AbortSignal.timeout(Math.ceil(ms));
    try {
      const body = JSON.stringify(requests.watch(key, after));
      const answer = await fetch(`${this.#hosts[0]}/v3/watch`, { method: "POST", body, headers: this.#headers(), signal });
      const decoder = new TextDecoder();
      let text = "";
      for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
        text += decoder.decode(chunk, { stream: true });
        if (text.includes('"events"')) return;
      }
    } catch (error) {
      if (!signal.aborted) await pause(50 + Math.random() * 50);
      if (!signal.aborted) log("warning", "the wait for a lock was interrupted", { key, error: textOf(error) });
    }
  }

  async txn(body: Json, within = REQUEST_MS): Promise<Outcome> {
    return outcomeOf(await this.post("/v3/kv/txn", body, within));
  }

  /** Send a request to the first member that works, and log in if etcd asks for it. */
  async post(path: string, body: Json, within = REQUEST_MS): Promise<Json> {
    let reason = "";
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const answer = await this.#send(path, body, within);
      if (answer.status === 200) return answer.body;
      reason = typeof answer.body.message === "string" ? answer.body.message : "";
      if (reason.includes("requested lease not found")) return {};
      if (/user name is empty|invalid auth token/.test(reason)) await this.#logIn();
      else if (!reason.includes("revision of auth store is old")) break;
    }
    throw new ResideError("not-ready", `etcd refused ${path}: ${reason.slice(0, 200)}`);
  }

  async #logIn(): Promise<void> {
    const user = await this.#user();
    if (!user) throw new ResideError("not-ready", "etcd asks for a user, and this process has none yet");
    this.#token = undefined;
    const answer = await this.#send("/v3/auth/authenticate", user, REQUEST_MS);
    if (typeof answer.body.token === "string") this.#token = answer.body.token;
    else throw new ResideError("not-ready", `etcd refuses user ${user.name}: ${String(answer.body.message)}`);
  }

  async #send(path: string, body: Json, within: number): Promise<{ status: number; body: Json }> {
    let failure: unknown;
    for (const host of [...this.#hosts]) {
      try {
        const options = { method: "POST", body: JSON.stringify(body), headers: this.#headers() };
        const answer = await fetch(host + path, { ...options, signal: AbortSignal.timeout(within) });
        const text = await answer.text();
        if (answer.status < 500) return { status: answer.status, body: JSON.parse(text) as Json };
        failure = new Error(text.slice(0, 200));
      } catch (error) {
        failure = error;
      }
      this.#hosts = [...this.#hosts.slice(1), host];
    }
    throw new ResideError("not-ready", `etcd does not respond: ${textOf(failure)}`, { cause: failure });
  }

  #headers(): Record<string, string> {
    return { "content-type": "application/json", ...(this.#token ? { authorization: this.#token } : {}) };
  }
}

/** A lock that is held. Its create revision is the fencing token: later holders have greater ones. */
export class Held {
  readonly key: string;
  readonly revision: string;
  readonly lease: string;
  readonly #locks: Locks;
  readonly #ttl: number;
  readonly #end = new AbortController();
  #renewedAt: number;
  #lost = "";

  constructor(locks: Locks, key: string, revision: string, lease: string, ttl: number, renewedAt: number) {
    this.#locks = locks;
    this.key = key;
    this.revision = revision;
    this.lease = lease;
    this.#ttl = ttl;
    this.#renewedAt = renewedAt;
  }

  /** Throw unless etcd confirms that the lock is held. Call it immediately before a guarded write. */
  async check(): Promise<void> {
    this.checkLease();
    const { succeeded } = await this.#locks.txn(requests.confirm(this.key, this.revision, this.lease));
    if (!succeeded) this.#lost = "another holder has it, or its lease expired";
    this.checkLease();
  }

  /** Throw if the lease may have expired, by the clock of this process. */
  checkLease(): void {
    const isOld = performance.now() >= this.#renewedAt + (this.#ttl * 1000) / 2;
    if (isOld) this.#lost ||= "its lease was not renewed for half of its time to live";
    if (this.#lost) throw new ResideError("not-ready", `lock ${this.key} is lost: ${this.#lost}`);
  }

  release(): void {
    this.#end.abort();
  }

  /** Renew the lease and write the key again until the lock is released or lost. */
  async keepAlive(): Promise<void> {
    let wait = (this.#ttl * 1000) / 3;
    while (!this.#lost) {
      await pause(wait, undefined, { signal: this.#end.signal }).catch(() => undefined);
      if (this.#end.signal.aborted) return;
      const sentAt = performance.now();
      try {
        if (!(await this.#renew((this.#ttl * 1000) / 12))) this.#lost ||= "its lease expired";
        this.#renewedAt = sentAt;
        wait = (this.#ttl * 1000) / 3;
      } catch (error) {
        log("warning", "lock can't be renewed", { key: this.key, error: textOf(error) });
        wait = (this.#ttl * 1000) / 24; // several attempts before the deadline
      }
    }
  }

  async #renew(within: number): Promise<boolean> {
    const answer = await this.#locks.post("/v3/lease/keepalive", requests.lease(this.lease), within);
    if (!Number((answer.result as { TTL?: string } | undefined)?.TTL ?? 0)) return false;
    const touch = requests.touch(this.key, this.#locks.holder, this.revision, this.lease);
    return (await this.#locks.txn(touch, within)).succeeded;
  }
}
