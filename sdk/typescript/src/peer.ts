// Other replicas: the control block names them, their profiles describe them.
import type { RawCoMap } from "cojson";
import { z } from "zod";
import { callMethod } from "./client.ts";
import type { Context } from "./context.ts";
import { contract, faultsOf, type Contract, type Method, type Returns } from "./contract.ts";
import { ResideError } from "./errors.ts";
import { grantedPermissions, keyOf, rpcPath } from "./permissions.ts";
import { parseProfile, withMaps, type Profile } from "./profile.ts";
import { findMap, loadMap, now, targetOf, uniqueId, until } from "./values.ts";

const ALPHA = contract({
  identity: "registry.reside.internal/reside/contracts/alpha.v1",
  methods: { "request-permission": { body: z.unknown(), returns: z.unknown() } },
  permissions: {},
});

/** A replica that implements a contract. */
export class Peer<C extends Contract = Contract> {
  readonly account: string;
  readonly name: string;
  readonly number: number | undefined;
  readonly #context: Context;
  readonly #contract: C;
  readonly #profile: RawCoMap;
  readonly #members: Profile;

  private constructor(context: Context, account: string, called: C, profile: RawCoMap, members: Profile) {
    this.account = account;
    this.name = members.name;
    this.number = members.replicaId ?? undefined;
    this.#context = context;
    this.#contract = called;
    this.#profile = profile;
    this.#members = members;
  }

  static async find<C extends Contract>(context: Context, account: string, named: C): Promise<Peer<C> | undefined> {
    const called = contract(named);
    const id = now(await context.loadAccount(account)).get("profile");
    const profile = typeof id === "string" ? await findMap(context.node, id, true) : undefined;
    const members = profile && parseProfile(await withMaps(context.node, now(profile).toJSON()));
    if (!profile || !members) throw new ResideError("not-ready", `account ${account} has not published a profile yet`);
    return Object.hasOwn(members.contracts, called.identity) ? new Peer(context, account, called, profile, members) : undefined;
  }

  /** Id of the contract's data, to load it with its schema. */
  get dataId(): string {
    const id = this.#members.contracts[this.#contract.identity];
    if (!id) throw new ResideError("not-ready", `${this.name} publishes no data of the contract`);
    return id;
  }

  /** Call a method with this replica's account. */
  async call<M extends Method<C>>(
    method: M,
    body: z.input<C["methods"][M]["body"]>,
    options?: { withinMs?: number },
  ): Promise<Returns<C, M>> {
    const endpoint = this.#members.endpoints[this.#context.settings.accessContext];
    if (!endpoint) throw new ResideError("not-ready", `replica ${this.name} publishes no such endpoint`);
    const path = rpcPath(this.name, this.#contract.identity, method);
    const target = { endpoint, receiver: this.account, path };
    const answer = await callMethod(this.#context.caller, target, body, options);
    const parsed = this.#contract.methods[method]!.returns.safeParse(answer);
    if (!parsed.success) throw new ResideError("error", `${this.name}.${method} answered ${faultsOf(parsed.error)}`);
    return parsed.data as Returns<C, M>;
  }

  /** Wait until this peer has granted a permission to this replica, and return the params. */
  async untilGranted(
    permission: keyof C["permissions"] & string,
    instanceId?: string,
    signal?: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const { node, account } = this.#context;
    const key = keyOf({ account, contract: this.#contract.identity, permission, instanceId });
    const name = grantedPermissions(account);
    const id = uniqueId(node, this.#profile.group.id, name);
    let pointer: RawCoMap | undefined;
    while (!(pointer = await findMap(node, id, true))) signal?.throwIfAborted();
    const published = await loadMap(node, await until(pointer, targetOf, signal));
    return until(published, (state) => state.get(key) as Record<string, unknown> | undefined, signal);
  }

  /** Ask people for a permission, and wait until they grant it. The manifest must require Alpha's contract. */
  async ask(
    permission: keyof C["permissions"] & string,
    { instanceId, params = {}, reason = "" }: { instanceId?: string; params?: object; reason?: string } = {},
  ): Promise<Record<string, unknown>> {
    const about = { replica: this.number, contract: this.#contract.identity, permission, instanceId: instanceId ?? null };
    const stored = (await (await this.#context.peer(ALPHA)).call("request-permission", { ...about, params, reason })) as Decided;
    this.#check(permission, stored);
    const mine = { ...about, instanceId: stored.instanceId };
    const end = new AbortController();
    const refused = loadMap(this.#context.node, stored.directGrants).then((grants) =>
      until(grants, (state): undefined => {
        for (const grant of Object.values(state.toJSON()) as unknown as Decided[]) {
          const isMine = Object.entries(mine).every(([name, value]) => grant[name as keyof Decided] === value);
          if (isMine) this.#check(permission, grant);
        }
      }, end.signal),
    );
    const granted = this.untilGranted(permission, stored.instanceId ?? undefined, end.signal);
    return Promise.race([granted, refused as Promise<never>]).finally(() => end.abort());
  }

  #check(permission: string, { status, decided }: Decided): void {
    if (status !== "rejected" && status !== "revoked") return;
    const why = decided?.reason ? `: ${decided.reason}` : "";
    throw new ResideError("not-allowed", `${permission} of ${this.name} was ${status}${why}; people can still grant it`);
  }
}

interface Decided {
  status: string;
  instanceId?: string;
  directGrants: string;
  decided?: { reason?: string };
}
