// Call the greeter once a second, count the outcomes in /metrics, and publish the last result in Jazz.
import { setTimeout as pause } from "node:timers/promises";
import { Metric, metrics, Replica, ResideError } from "@reside/replica";
import { co, z } from "jazz-tools";
import { greeting } from "./greeting.ts";

const LastCall = co.map({ result: z.object({ outcome: z.string(), message: z.string(), version: z.number().optional() }) });
const calls = new Metric("caller_calls_total", "Calls of greet.", "counter");
metrics.own.push(calls);

await new Replica()
  .main(async (context) => {
    const value = { result: { outcome: "starting", message: "" } };
    const unique = { unique: "last-call", owner: context.publicGroup };
    const published = await LastCall.getOrCreateUnique({ ...unique, value }); // everyone can read it
    if (!published.$isLoaded) throw new Error("the last call can't be loaded");
    for (;;) {
      let result: { outcome: string; message: string; version?: number };
      try {
        const greeter = await context.peer(greeting);
        result = { outcome: "ok", ...(await greeter.call("greet", { name: context.name })) };
      } catch (error) {
        if (!(error instanceof ResideError)) throw error;
        result = { outcome: error.code === "not-allowed" ? "refused" : "failed", message: error.message };
      }
      calls.add({ outcome: result.outcome });
      if (JSON.stringify(result) !== JSON.stringify(published.result)) published.$jazz.set("result", result);
      await pause(1_000);
    }
  })
  .launch();
