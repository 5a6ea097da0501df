// Drives the official jazz-tools package for the tests; the protocol is driver.mjs's.
//
// An actor is an account as `startWorker` logs it in; values are named by their ids.
import { authenticateRequest, generateAuthToken } from "jazz-tools";
import { startWorker } from "jazz-tools/worker";
import { WebSocket } from "ws";
import { serve } from "./serve.mjs";

const workers = new Map();

serve({
  async login({ actor, url, accountID, accountSecret }) {
    const started = await startWorker({ accountID, accountSecret, syncServer: url, WebSocket });
    workers.set(actor, started);
    return { id: started.worker.$jazz.id };
  },
  // The value of an Authorization header; `at` sets the clock for it.
  token({ actor, at }) {
    const now = Date.now;
    if (at !== undefined) Date.now = () => at;
    try {
      return `Jazz ${generateAuthToken(workers.get(actor).worker)}`;
    } finally {
      Date.now = now;
    }
  },
  async authenticate({ actor, header }) {
    const headers = header ? { Authorization: header } : {};
    const request = new Request("http://127.0.0.1/", { headers });
    const { account, error } = await authenticateRequest(request, { loadAs: workers.get(actor).worker });
    return { account: account?.$jazz.id ?? null, error: error?.message ?? null };
  },
  async flush({ actor }) {
    await workers.get(actor).worker.$jazz.waitForAllCoValuesSync({ timeout: 20_000 });
  },
});
