// Asks people for two permissions, uses a lock in between, and ends.
import { contract, log, Replica, ResideError } from "@reside/replica";
import { z } from "zod";

const greeting = contract({
  identity: process.env.CONTRACT!,
  methods: {},
  permissions: { room: { params: z.object({ room: z.string() }) } },
});

await new Replica()
  .main(async (context) => {
    const greeter = await context.peer(greeting);
    const params = await greeter.ask("room", { params: { room: "red" }, reason: "to greet there" });
    log("info", "granted", { params, again: await greeter.untilGranted("room", "red") });
    await context.transaction("co_zAny", ({ lock, stage }) => {
      stage(() => log("info", "locked", { revision: lock.revision }));
      return Promise.resolve();
    });
    try {
      await greeter.ask("room", { params: { room: "black" } });
    } catch (error) {
      if (!(error instanceof ResideError)) throw error;
      log("info", "refused", { code: error.code, message: error.message });
    }
  })
  .launch();
