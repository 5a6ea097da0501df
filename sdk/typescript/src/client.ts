// Calls of other replicas (docs/wire.md, section 5).
import { setTimeout as pause } from "node:timers/promises";
import type { CryptoProvider } from "cojson";
import { z } from "zod";
import { AnswerLost, fromWire, ResideError, textOf } from "./errors.ts";
import { isNotSent, post } from "./http.ts";
import { INSTANCE_HEADER, parseJson, signedPath } from "./permissions.ts";
import { sharedKey } from "./shared.ts";
import { accountOf, signRequest } from "./tokens.ts";

const INSTANCES = 32;

/** The process of a receiver that the last call has reached, and the key that its account shares with the caller's. */
export interface Process {
  instance: string;
  key?: Buffer | undefined;
}

/** What calls need: the account that calls, and the processes of the receivers by their accounts. */
export interface Caller {
  crypto: CryptoProvider;
  accountId: string;
  agentId: string;
  agentSecret: string;
  processes: Map<string, Process>;
}

/** What a response means: a value, or that the call may be sent again because it was not handled. */
export type Answer = { value: unknown } | { again: true; instance?: string; agent?: string | undefined; message: string };

const Refusal = z.object({
  error: z.object({ code: z.unknown(), message: z.unknown() }),
  instance: z.string().regex(/^[A-Za-z0-9_-]{1,64}$/).optional().catch(undefined),
  agent: z.string().optional().catch(undefined),
});

/** Read a response; the error of the receiver is thrown. */
export function readResponse(status: number, text: string): Answer {
  const data = parseJson(text);
  if (status >= 200 && status < 300) {
    if (data === undefined) throw new ResideError("error", "the receiver answered without JSON: is it a replica?");
    return { value: data };
  }
  const refusal = Refusal.safeParse(data).data;
  if (!refusal) {
    if ([502, 503, 504].includes(status)) throw new ResideError("not-ready", `the receiver is not ready: HTTP ${status}`);
    throw new ResideError("error", `HTTP ${status} without a ReSide error: is it a replica?`);
  }
  const { error, instance, agent } = refusal;
  if (status === 503 && error.code === "not-serving") return { again: true, message: String(error.message) };
  if (status !== 421 || error.code !== "other-instance") throw fromWire(error.code, error.message);
  if (!instance) throw new ResideError("error", "the receiver does not name its process: is it a replica?");
  return { again: true, instance, agent, message: String(error.message) };
}

/** Call a method, and send it again while the receiver has not handled it. */
export async function callMethod(
  caller: Caller,
  target: { endpoint: string; receiver: string; path: string },
  body: unknown,
  { withinMs = 30_000 } = {},
): Promise<unknown> {
  const content = JSON.stringify(body);
  const deadline = Date.now() + withinMs;
  for (let attempt = 0; ; attempt += 1) {
    const answer = await attemptCall(caller, target, content);
    if ("value" in answer) return answer.value;
    const wait = Math.min(2_000, 100 * 2 ** attempt) * (0.5 + Math.random() / 2);
    if (Date.now() + wait > deadline) throw new ResideError("not-ready", answer.message);
    await pause(wait);
  }
}

async function attemptCall(
  caller: Caller,
  { endpoint, receiver, path }: { endpoint: string; receiver: string; path: string },
  content: string,
): Promise<Answer> {
  for (let tried = 0; tried < INSTANCES; tried += 1) {
    const { instance, key } = caller.processes.get(receiver) ?? { instance: "" };
    const request = { method: "POST", path: signedPath(path, instance), body: content };
    const authorization = signRequest(caller.crypto, caller, receiver, request, { key });
    const headers = { authorization, "content-type": "application/json", [INSTANCE_HEADER]: instance };
    let response: { status: number; text: string };
    try {
      response = await post(endpoint, path, content, headers);
    } catch (error) {
      if (isNotSent(error)) return { again: true, message: `${endpoint} can't be reached: ${textOf(error)}` };
      throw new AnswerLost("not-ready", `${endpoint} did not respond: ${textOf(error)}; the call may have been carried out`);
    }
    if (response.status === 401 && key) {
      // Not handled. An older receiver knows no codes, but somebody on the way has named its agent.
      caller.processes.set(receiver, { instance });
      continue;
    }
    const answer = readResponse(response.status, response.text);
    if ("value" in answer || answer.instance === undefined) return answer;
    caller.processes.set(receiver, { instance: answer.instance, key: keyFor(caller, receiver, answer.agent) });
  }
  return { again: true, message: `${endpoint} is served by another process at each attempt: use fewer pods` };
}

/** Return the key shared with a receiver that has named its agent. Its account is a hash of the agent, so nobody can lie. */
function keyFor({ crypto, agentSecret }: Caller, receiver: string, agent: string | undefined): Buffer | undefined {
  const isAgent = agent !== undefined && accountOf(crypto, agent) === receiver;
  return isAgent ? sharedKey(crypto, agentSecret, agent) : undefined;
}
