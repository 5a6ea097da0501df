// Counts calls in the contract's data, in transactions.
import { contract, Replica } from "@reside/replica";
import { co, z } from "jazz-tools";
import { z as zod } from "zod";

const counting = contract({
  identity: "registry.example/contracts/counting.v1",
  methods: { count: { body: zod.object({ by: zod.string() }), returns: zod.object({ count: zod.number() }) } },
  permissions: {},
});
const Counter = co.map({ count: z.number(), by: co.list(z.string()), last: z.date().optional() });

await new Replica(counting)
  .data(counting, async (context) => {
    const value = { count: 0, by: [] };
    const found = await Counter.getOrCreateUnique({ unique: "counter", owner: context.publicGroup, value });
    if (!found.$isLoaded) throw new Error("the counter can't be loaded");
    return found;
  })
  .method(counting, "count", async ({ context }, { by }) => {
    const id = context.data.get(counting.identity)!.$jazz.id;
    return context.transaction(id, async (transaction) => {
      const counter = await Counter.load(id, { resolve: { by: true } });
      if (!counter.$isLoaded) throw new Error("the counter can't be loaded");
      const count = counter.count + 1;
      transaction.stage(() => {
        counter.$jazz.set("count", count);
        counter.$jazz.set("last", new Date());
        counter.by.$jazz.push(by);
      });
      return { count };
    });
  })
  .launch();
