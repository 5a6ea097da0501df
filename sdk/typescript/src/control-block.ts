// The control block of a replica (docs/wire.md, section 3).
import type { LocalNode, RawCoMap } from "cojson";
import { ResideError } from "./errors.ts";
import { inForce, isObject, keyOf, parseEntry, type Entry, type Grant, type PermissionRef } from "./permissions.ts";
import { findMap, loadMap, now, ownerOf } from "./values.ts";

/** Return for each requirement, by key, the accounts of the replicas that serve it. */
export function parseRequirements(found: unknown): Map<string, string[]> {
  const named = Object.entries(isObject(found) ? found : {}).filter(([, accounts]) => Array.isArray(accounts));
  const texts = (accounts: unknown) => (accounts as unknown[]).filter((account) => typeof account === "string");
  return new Map(named.map(([key, accounts]) => [key, texts(accounts)]));
}

/** One control block, loaded. Reads return the current state. */
export class ControlBlock {
  readonly root: RawCoMap;
  readonly #node: LocalNode;
  readonly #permissions: RawCoMap;
  readonly #entries = new Map<string, RawCoMap>();
  readonly #missing = new Map<string, string>();
  readonly #loading = new Map<string, Promise<boolean>>();
  readonly #listeners = new Set<() => void>();

  private constructor(node: LocalNode, root: RawCoMap, permissions: RawCoMap) {
    this.#node = node;
    this.root = root;
    this.#permissions = permissions;
  }

  static async load(node: LocalNode, id: string): Promise<ControlBlock> {
    const root = await loadMap(node, id);
    for (const edit of now(root).editsAt("permissions")) {
      const found = typeof edit.value === "string" ? await findMap(node, edit.value, true) : undefined;
      if (!found || ownerOf(found) !== ownerOf(root)) continue;
      const block = new ControlBlock(node, root, found);
      root.subscribe(() => block.#notify());
      found.subscribe(() => block.#notify());
      await block.refresh();
      return block;
    }
    throw new ResideError("not-ready", `control block ${id} has no readable content: is this account one of its readers?`);
  }

  get number(): number {
    const found = now(this.root).get("id");
    if (typeof found !== "number") throw new ResideError("not-ready", `control block ${this.root.id} has no id yet`);
    return found;
  }

  get requirements(): Map<string, string[]> {
    return parseRequirements(now(this.root).get("requirements"));
  }

  /** The address for clients outside of the cluster; null: there is none, undefined: the block does not say. */
  get externalEndpoint(): string | null | undefined {
    return now(this.root).get("externalEndpoint") as string | null | undefined;
  }

  /** The user with which the replica takes locks; undefined if Alpha has not written it yet. */
  async lockUser(): Promise<{ name: string; password: string } | undefined> {
    const id = now(this.root).get("lockAccess");
    const access = typeof id === "string" ? await findMap(this.#node, id) : undefined;
    const [name, password] = [access && now(access).get("user"), access && now(access).get("password")];
    return typeof name === "string" && typeof password === "string" ? { name, password } : undefined;
  }

  entries(): Entry[] {
    return [...this.#entries.keys()].map((key) => this.#parse(key)).filter((entry) => entry !== undefined);
  }

  find(ref: PermissionRef): Entry | undefined {
    const entry = this.#parse(keyOf(ref));
    return entry?.ref.permission === ref.permission && entry.ref.instanceId === ref.instanceId ? entry : undefined;
  }

  isGranted(ref: PermissionRef): boolean {
    return inForce(this.find(ref));
  }

  setCurrent(ref: PermissionRef, grant: Grant): void {
    now(this.#entries.get(keyOf(ref))!).set("current", grant);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Load the entries that were added or replaced; return whether all could be loaded. One that could not is waited for
   * once, so that it does not delay what others are granted. */
  async refresh(): Promise<boolean> {
    const permissions = now(this.#permissions);
    const loaded = permissions.keys().map(async (key) => {
      const id = permissions.get(key);
      if (typeof id !== "string" || this.#entries.get(key)?.id === id) return true;
      const loading = this.#load(key, id);
      return this.#missing.get(key) === id ? false : loading;
    });
    return (await Promise.all(loaded)).every(Boolean);
  }

  #load(key: string, id: string): Promise<boolean> {
    const before = this.#loading.get(id);
    if (before) return before;
    const load = async () => {
      const entry = await findMap(this.#node, id, true).catch(() => undefined);
      if (!entry) {
        this.#missing.set(key, id);
        return false;
      }
      this.#missing.delete(key);
      this.#entries.set(key, entry);
      if (this.#owns(entry)) entry.subscribe(() => this.#notify());
      return true;
    };
    const loading = load().finally(() => this.#loading.delete(id));
    this.#loading.set(id, loading);
    return loading;
  }

  #owns(entry: RawCoMap): boolean {
    return ownerOf(entry) === ownerOf(this.root);
  }

  #parse(key: string): Entry | undefined {
    const entry = this.#entries.get(key);
    const counts = entry && this.#owns(entry) && now(this.#permissions).get(key) === entry.id;
    return counts ? parseEntry(key, now(entry).toJSON()) : undefined;
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
