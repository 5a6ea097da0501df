// The HTTP server of a replica: calls, probes, metrics (docs/wire.md, sections 5 and 8).
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Bodies } from "./bodies.ts";
import { ResideError, STATUSES, textOf } from "./errors.ts";
import { resolved } from "./identities.ts";
import { log } from "./logs.ts";
import { metrics, metricsText } from "./metrics.ts";
import { accountPath, INSTANCE_HEADER, isObject, parseJson, signedPath } from "./permissions.ts";
import type { SiteFiles } from "./site.ts";
import type { Verify } from "./tokens.ts";

const QUIET_MS = 500;
const LONGEST_DRAIN_MS = 5_000;
const GRACE_MS = 20_000;
/** How long the rest of a refused body is read: if the connection ended at once, its sender might not see the answer. */
const DISCARD_MS = 10_000;
const REQUEST_MS = 60_000;

/** Handles an authenticated call; `body` is the JSON object of the call. */
export type Handler = (account: string, body: Record<string, unknown>) => Promise<unknown>;

/** What answers calls once the start is complete. */
export interface Serving {
  account: string;
  /** The agent of the account: callers that know it need no signature. */
  agent: string;
  verify: Verify;
  find(contract: string, method: string): Handler | undefined;
}

/** Serves from the start of the process; calls are refused as not serving until `open`. */
export class ReplicaServer {
  readonly instance = randomBytes(12).toString("base64url");
  readonly checks = new Map<string, () => boolean>();
  /** Files for browsers; undefined: none. */
  site: SiteFiles | undefined;
  readonly #replica: string;
  readonly #discardMs: number;
  readonly #server: Server;
  readonly #bodies: Bodies;
  #serving: Serving | undefined;
  #started = false;
  #draining = false;
  #lastCall = -Infinity;

  /** `requestMs` is the time in which a whole request must arrive. */
  constructor(replica: string, { requestMs = REQUEST_MS, discardMs = DISCARD_MS, bodies = new Bodies() } = {}) {
    this.#replica = replica;
    this.#discardMs = discardMs;
    this.#bodies = bodies;
    const headersTimeout = Math.min(requestMs, 15_000);
    const limits = { requestTimeout: requestMs, headersTimeout, connectionsCheckingInterval: Math.ceil(headersTimeout / 3) };
    this.#server = createServer(limits, (request, response) => {
      this.#answer(request, response).catch((error: unknown) => this.#fail(response, error));
    });
  }

  /** Listen, and return the port. */
  async listen(host: string, port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(port, host, 128, resolve);
    });
    return (this.#server.address() as AddressInfo).port;
  }

  /** Become ready, and answer calls if the replica has methods. */
  open(serving: Serving | undefined): void {
    this.#serving = serving;
    this.#started = true;
  }

  /** Become unready, answer until no call has arrived for a moment, then let the calls in progress end. */
  async drain(): Promise<void> {
    this.#draining = true;
    const deadline = performance.now() + LONGEST_DRAIN_MS;
    for (;;) {
      const rest = Math.min(this.#lastCall + QUIET_MS, deadline) - performance.now();
      if (rest <= 0) break;
      await new Promise((resolve) => setTimeout(resolve, rest));
    }
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeIdleConnections();
    const timer = setTimeout(() => this.#server.closeAllConnections(), GRACE_MS);
    await closed;
    clearTimeout(timer);
  }

  #missing(): string[] {
    const own = [...this.checks].filter(([, holds]) => !holds()).map(([name]) => name);
    return [...(this.#started ? [] : ["starting"]), ...(this.#draining ? ["stopping"] : []), ...own];
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = (request.url ?? "").split("?")[0] ?? "";
    const path = decode(sent);
    if (this.#draining) response.setHeader("connection", "close");
    if (path === "/healthz") return end(response, 200, "ok\n", "text/plain");
    if (path === "/metrics") return end(response, 200, metricsText(), "text/plain; version=0.0.4; charset=utf-8");
    if (path === "/readyz") {
      const missing = this.#missing();
      return reply(response, missing.length === 0 ? 200 : 503, { ready: missing.length === 0, missing });
    }
    if (path === accountPath(this.#replica) && request.method === "GET" && this.#serving) {
      response.setHeader("cache-control", "no-store");
      return reply(response, 200, { account: this.#serving.account });
    }
    if (this.site?.(sent, request, response)) return; // the names of its files need no escapes
    const parts = /^\/replicas\/([^/]+)\/rpc\/(.+)\/([^/]+)$/.exec(path);
    if (!parts) return reply(response, 404, bodyOf(new ResideError("not-found", "there is no such path")));
    if (request.method !== "POST") return end(response, 405, "", "text/plain");
    this.#lastCall = performance.now();
    await this.#call(request, response, path, parts.slice(1));
  }

  /** Answer if the result can't be sent, for example because it is not JSON. Without this, the process would end. */
  #fail(response: ServerResponse, error: unknown): void {
    log("error", "the answer can't be sent", { error: textOf(error) });
    if (response.headersSent) response.destroy();
    else reply(response, 500, bodyOf(new ResideError("error", `${this.#replica} failed to answer: see its log`)));
  }

  async #call(request: IncomingMessage, response: ServerResponse, path: string, parts: string[]): Promise<void> {
    const began = performance.now();
    const [replica = "", called = "", method = ""] = parts;
    const contract = resolved(called);
    const handler = this.#serving?.find(contract, method);
    const handle = async (): Promise<[number, unknown] | undefined> => {
      const serving = this.#serving;
      if (!serving) throw new ResideError("not-serving", `${this.#replica} is starting: try again`);
      if (request.headers[INSTANCE_HEADER] !== this.instance) {
        const message = `this is another process of ${this.#replica}: make a token for it`;
        return [421, { error: { code: "other-instance", message }, instance: this.instance, agent: serving.agent }];
      }
      const content = await this.#bodies.read(request, response, this.#discardMs);
      if (!content) return undefined;
      const signed = { method: request.method ?? "", path: signedPath(path, this.instance), body: content };
      const account = serving.verify(request.headers.authorization, signed);
      if (replica !== this.#replica) throw new ResideError("not-found", `this is replica ${this.#replica}, not ${replica}`);
      if (!handler) throw new ResideError("not-found", `${this.#replica} has no method ${method} of this contract`);
      return [200, (await handler(account, parse(content))) ?? null];
    };
    const answer = await handle().catch((error: unknown) => this.#refusal(error, method));
    if (!answer) return; // the caller has left
    const [status, body] = answer;
    const names = handler ? { contract, method } : { contract: "unknown", method: "unknown" };
    const labels = { replica: this.#replica, ...names };
    metrics.seconds.observe(labels, (performance.now() - began) / 1000);
    metrics.calls.add({ ...labels, status: String(status) });
    reply(response, status, body);
  }

  #refusal(error: unknown, method: string): [number, unknown] {
    if (error instanceof ResideError) return [STATUSES[error.code], bodyOf(error)];
    log("error", "call failed", { method, error: error instanceof Error ? (error.stack ?? error.message) : "" });
    return [500, bodyOf(new ResideError("error", `${this.#replica} failed to handle ${method}: see its log`))];
  }
}

function parse(content: Buffer): Record<string, unknown> {
  const body = content.length === 0 ? {} : parseJson(content.toString());
  if (body === undefined) throw new ResideError("invalid-input", "the body is not JSON: send a JSON object");
  if (!isObject(body)) throw new ResideError("invalid-input", "the body is not a JSON object: send one, e.g. {}");
  return body;
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function bodyOf(error: ResideError): unknown {
  return { error: { code: error.code, message: error.message } };
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  end(response, status, JSON.stringify(body), "application/json");
}

function end(response: ServerResponse, status: number, text: string, type: string): void {
  // With its length, the answer is one piece on the wire; without it, Node sends chunks.
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) }).end(text);
}
