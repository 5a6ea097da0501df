// The class with which a replica's code declares what the replica does, and runs it.
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { NapiCrypto } from "jazz-tools/napi";
import { startWorker } from "jazz-tools/worker";
import { Call, Context, type Value } from "./context.ts";
import { contract, faultsOf, type Body, type Contract, type Method, type Returns } from "./contract.ts";
import { ControlBlock } from "./control-block.ts";
import { ResideError, textOf } from "./errors.ts";
import { PermissionLoop, type PermissionHandlers } from "./grants.ts";
import { resolved } from "./identities.ts";
import { log, nameLogs } from "./logs.ts";
import type { PermissionRef } from "./permissions.ts";
import { ReplicaServer } from "./server.ts";
import { readSettings, type Settings } from "./settings.ts";
import { siteFiles, type Site } from "./site.ts";
import { accountOf, newVerifier } from "./tokens.ts";
import { assign } from "./values.ts";

const STEP_MS = 270_000;

/** One replica: the contracts that it implements, and the functions that implement them. */
export class Replica {
  readonly #contracts: Map<string, Contract>;
  readonly #methods = new Map<string, (call: Call, body: unknown) => Promise<unknown>>();
  readonly #permissions = new Map<string, PermissionHandlers>();
  readonly #data = new Map<string, (context: Context) => Promise<Value>>();
  #site: ((context: Context) => Site) | undefined;
  #main: ((context: Context) => Promise<void>) | undefined;

  constructor(...contracts: Contract[]) {
    this.#contracts = new Map(contracts.map((each) => [resolved(each.identity), contract(each)]));
  }

  /** Declare the function that handles a method. Body and result are checked against the contract. */
  method<C extends Contract, M extends Method<C>>(
    implemented: C,
    name: M,
    handler: (call: Call<C>, body: Body<C, M>) => Promise<Returns<C, M>> | Returns<C, M>,
  ): this {
    const { body: bodySchema, returns } = implemented.methods[name]!;
    this.#methods.set(`${resolved(implemented.identity)}/${name}`, async (call, body) => {
      const given = bodySchema.safeParse(body);
      if (!given.success) throw new ResideError("invalid-input", `${name}: the body ${faultsOf(given.error)}`);
      return returns.parse(await handler(call as unknown as Call<C>, given.data as Body<C, M>));
    });
    return this;
  }

  /** Declare handlers of a permission. Without them a permission is only stored as granted. */
  permission<C extends Contract>(implemented: C, name: keyof C["permissions"] & string, handlers: PermissionHandlers): this {
    this.#permissions.set(`${resolved(implemented.identity)}/${name}`, handlers);
    return this;
  }

  /** Declare the function that finds or creates a contract's data; it runs at every start. */
  data(implemented: Contract, find: (context: Context) => Promise<Value>): this {
    this.#data.set(resolved(implemented.identity), find);
    return this;
  }

  /** Declare files for browsers; `make` runs at the start and at each change of the control block. */
  site(make: (context: Context) => Site): this {
    this.#site = make;
    return this;
  }

  /** Declare the replica's own code; without it, the replica serves until it is stopped. */
  main(run: (context: Context) => Promise<void>): this {
    this.#main = run;
    return this;
  }

  /** Run as a process until SIGTERM or the end of the own code. Exit code: 0, 1 for an error, 2 for bad settings. */
  async launch(): Promise<never> {
    let settings: Settings;
    try {
      settings = readSettings();
    } catch (error) {
      process.stderr.write(`${textOf(error)}\n`);
      process.exit(2);
    }
    nameLogs(settings.replicaName);
    const stopped = new Promise<void>((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve());
    });
    try {
      const { context, stop } = await this.start(settings);
      const work = this.#main ? this.#main(context) : new Promise<void>(() => undefined);
      await Promise.race([work, stopped]);
      await stop();
    } catch (error) {
      log("error", "replica failed", { error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
      process.exit(1);
    }
    process.exit(0);
  }

  /** Run everything but the own code; `stop` ends it gracefully. */
  async start(settings: Settings): Promise<{ context: Context; port: number; stop: () => Promise<void> }> {
    const server = new ReplicaServer(settings.replicaName);
    const port = await server.listen(settings.listenHost, settings.listenPort);
    const crypto = await NapiCrypto.create();
    if (accountOf(crypto, crypto.getAgentID(settings.agentSecret as never)) !== settings.accountId) {
      throw new Error("RESIDE_AGENT_SECRET does not belong to RESIDE_ACCOUNT_ID");
    }
    const { accountId: accountID, agentSecret: accountSecret, syncServerUrl: syncServer } = settings;
    await attempt(() => reach(syncServer)); // jazz-tools gives up, and leaves its connection behind
    const jazz = await attempt(() => startWorker({ accountID, accountSecret, syncServer, crypto, skipInboxLoad: true }));
    const worker = await jazz.worker.$jazz.ensureLoaded({ resolve: { profile: true } });
    const block = await attempt(() => ControlBlock.load(worker.$jazz.localNode, settings.controlBlockId));
    const context = new Context(settings, worker, block, server);
    const host = settings.listenPort === 0 ? `${settings.listenHost}:${port}` : settings.replicaName;
    const endpoint = settings.internalEndpoint ?? `http://${host}`;
    for (const [identity, find] of this.#data) context.data.set(identity, await attempt(() => find(context)));
    const publish = () => this.#publish(context, endpoint);
    publish();
    await attempt(() => context.node.syncManager.waitForAllCoValuesSync(STEP_MS));
    const unsubscribe = block.root.subscribe(() => {
      try {
        publish();
      } catch (error) {
        log("error", "the profile can't be published again", { error: textOf(error) }); // the process goes on as it is
      }
    });
    const loop = new PermissionLoop(context, (ref) => this.#handlersOf(ref));
    loop.start();
    server.open(this.#methods.size === 0 ? undefined : this.#serving(context));
    log("info", "started", { account: accountID, endpoint });
    const stop = async () => {
      log("info", "stopping");
      await server.drain();
      unsubscribe();
      await loop.stop();
      await context.node.syncManager.waitForAllCoValuesSync(10_000).catch((error: unknown) => {
        log("error", "the last writes may not have reached the sync server", { error: textOf(error) });
      });
      await jazz.shutdownWorker();
    };
    return { context, port, stop };
  }

  #handlersOf({ contract: identity, permission }: PermissionRef): PermissionHandlers | undefined {
    const isDeclared = Object.hasOwn(this.#contracts.get(identity)?.permissions ?? {}, permission);
    return isDeclared ? (this.#permissions.get(`${identity}/${permission}`) ?? {}) : undefined;
  }

  #serving(context: Context) {
    return {
      account: context.account,
      agent: context.caller.agentId,
      verify: newVerifier(context.node.crypto, context.settings),
      find: (identity: string, method: string) => {
        const handler = this.#methods.get(`${identity}/${method}`);
        const called = this.#contracts.get(identity);
        if (!handler || !called) return undefined;
        return (account: string, body: unknown) => handler(new Call(context, account, called), body);
      },
    };
  }

  #publish(context: Context, internal: string): void {
    const { block, externalEndpoint: external } = context;
    if (this.#site) context.server.site = siteFiles(context.name, this.#site(context));
    assign(context.profile, {
      name: context.name,
      replicaId: block.number,
      endpoints: { internal, ...(external ? { external } : {}) },
      contracts: Object.fromEntries(
        [...this.#contracts.keys()].map((identity) => [identity, context.data.get(identity)?.$jazz.id ?? null]),
      ),
    });
  }
}

/** Connect to the sync server once. */
async function reach(url: string): Promise<void> {
  const socket = new WebSocket(url);
  const failed = once(socket, "error").then(() => {
    throw new ResideError("not-ready", `the sync server ${url} can't be reached`);
  });
  await Promise.race([once(socket, "open"), failed]);
  socket.close();
}

/** Try a step of the start again while what it needs is not ready. */
async function attempt<T>(step: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + STEP_MS;
  for (let wait = 100; ; wait = Math.min(wait * 2, 5_000)) {
    try {
      return await step();
    } catch (error) {
      if (Date.now() + wait > deadline || !(error instanceof ResideError && error.code === "not-ready")) throw error;
      await pause(wait);
    }
  }
}
