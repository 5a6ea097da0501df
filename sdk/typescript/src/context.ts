// A running replica: its account, control block, locks, data and peers.
import type { AgentSecret, CoID, LocalNode, RawAccount, RawCoMap, RawGroup } from "cojson";
import type { Account, Group } from "jazz-tools";
import type { Caller } from "./client.ts";
import { ControlBlock } from "./control-block.ts";
import type { Contract } from "./contract.ts";
import { ResideError, textOf } from "./errors.ts";
import { Locks, type Held } from "./locks.ts";
import { log } from "./logs.ts";
import { Peer } from "./peer.ts";
import { inForce, type PermissionRef } from "./permissions.ts";
import type { ReplicaServer } from "./server.ts";
import type { Settings } from "./settings.ts";
import { catchUp } from "./values.ts";

/** Something that has an id in Jazz, such as a value of jazz-tools' schemas. */
export interface Value {
  readonly $jazz: { readonly id: string };
}

/** An authenticated call of one method. */
export class Call<C extends Contract = Contract> {
  readonly context: Context;
  /** The caller, authenticated by its token. */
  readonly account: string;
  readonly #contract: C;

  constructor(context: Context, account: string, called: C) {
    this.context = context;
    this.account = account;
    this.#contract = called;
  }

  has(permission: keyof C["permissions"] & string, instanceId?: string): boolean {
    return this.context.block.isGranted(this.#ref(permission, instanceId));
  }

  /** Throw unless the caller has this permission; return the params with which it was granted. */
  require(permission: keyof C["permissions"] & string, instanceId?: string): Record<string, unknown> {
    const ref = this.#ref(permission, instanceId);
    const entry = this.context.block.find(ref);
    if (inForce(entry)) return { ...entry.expected.params };
    const of = instanceId === undefined ? "" : ` for ${instanceId}`;
    const what = `the call needs the permission ${permission}${of} of ${ref.contract}`;
    throw new ResideError("not-allowed", `${what}, which ${this.account} was not granted by ${this.context.name}`);
  }

  #ref(permission: string, instanceId?: string): PermissionRef {
    return { account: this.account, contract: this.#contract.identity, permission, instanceId };
  }
}

/** Changes of an object under its lock: `stage` adds a write that happens after the lock was confirmed. */
export interface Transaction {
  readonly lock: Held;
  stage(write: () => void): void;
}

/** A started replica. */
export class Context {
  readonly settings: Settings;
  readonly name: string;
  readonly account: string;
  readonly worker: Account;
  readonly node: LocalNode;
  readonly block: ControlBlock;
  readonly locks: Locks;
  readonly caller: Caller;
  readonly server: ReplicaServer;
  readonly profile: RawCoMap;
  /** The group of the profile, which everyone can read; it owns unique values that others must find. */
  readonly public: RawGroup;
  /** The same as an owner for values of jazz-tools' schemas. */
  readonly publicGroup: Group;
  /** Contract identity → the value that its data function returned. */
  readonly data = new Map<string, Value>();

  constructor(settings: Settings, worker: Account, block: ControlBlock, server: ReplicaServer) {
    this.settings = settings;
    this.worker = worker;
    this.node = worker.$jazz.localNode;
    this.block = block;
    this.server = server;
    const { accountId, agentSecret, etcdHosts, replicaName } = settings;
    [this.name, this.account] = [replicaName, accountId];
    const profile = worker.profile.$jazz as unknown as { raw: RawCoMap; owner: Group }; // loaded by `Replica.start`
    [this.profile, this.public, this.publicGroup] = [profile.raw, profile.raw.group, profile.owner];
    this.locks = new Locks(etcdHosts, accountId, replicaName, () => block.lockUser());
    const { crypto } = this.node;
    const agentId = crypto.getAgentID(agentSecret as AgentSecret);
    this.caller = { crypto, accountId, agentId, agentSecret, processes: new Map() };
  }

  /** The address for clients outside of the cluster, such as `https://cluster.example.com`; undefined: there is none. */
  get externalEndpoint(): string | undefined {
    const stored = this.block.externalEndpoint;
    return stored === undefined ? this.settings.externalEndpoint : (stored ?? undefined);
  }

  async loadAccount(id: string): Promise<RawAccount> {
    const found = await this.node.load(id as CoID<RawAccount>);
    if (found === "unavailable") throw new ResideError("not-ready", `account ${id} can't be loaded`);
    return found;
  }

  /** Return the replicas that serve a contract, as the control block names them now. */
  async peers<C extends Contract>(called: C): Promise<Peer<C>[]> {
    const accounts = new Set([...this.block.requirements.values()].flat());
    const found = await Promise.allSettled([...accounts].map((account) => Peer.find(this, account, called)));
    const peers = found.flatMap((each) => (each.status === "fulfilled" && each.value ? [each.value] : []));
    const failed = found.find((each) => each.status === "rejected");
    if (peers.length === 0 && failed) throw failed.reason as Error;
    return peers;
  }

  async peer<C extends Contract>(called: C): Promise<Peer<C>> {
    const [first] = await this.peers(called);
    if (first) return first;
    throw new ResideError("not-ready", `the control block of ${this.name} names no replica for ${called.identity}`);
  }

  /** Run `work` under the lock of an object, on current content; then confirm the lock, write, and wait for the server. */
  async transaction<T>(objectId: string, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.locks.with(`transaction/${objectId}`, async (lock) => {
      await catchUp(this.node, this.profile);
      const staged: (() => void)[] = [];
      const result = await work({ lock, stage: (write) => void staged.push(write) });
      if (staged.length > 0) {
        await lock.check();
        for (const write of staged) write();
        await this.#acknowledged(lock);
      }
      return result;
    });
  }

  async #acknowledged(lock: Held): Promise<void> {
    try {
      await this.node.syncManager.waitForAllCoValuesSync(12_000);
      lock.checkLease();
    } catch (error) {
      // The next holder has not seen these writes. cojson would send them later, so this process must not go on.
      log("error", "writes were not acknowledged while their lock was held", { key: lock.key, error: textOf(error) });
      process.exit(1);
    }
  }
}
