// Drives the official jazz-tools package for the tests; the protocol is driver.mjs's.
//
// An actor is an account as `startWorker` logs it in; values are named by their ids.
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
  async flush({ actor }) {
    await workers.get(actor).worker.$jazz.waitForAllCoValuesSync({ timeout: 20_000 });
  },
});
