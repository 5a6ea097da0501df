// Written by `reside contract types`. Do not change it: write it again when the contract changes.
import { contract } from "@reside/replica";
import { z } from "zod";

export const GreetBody = z.object({
  "name": z.string().default("stranger"),
});
export type GreetBody = z.output<typeof GreetBody>;

export const GreetReturns = z.object({
  "message": z.string(),
  "version": z.int(),
});
export type GreetReturns = z.output<typeof GreetReturns>;

export const greeting = contract({
  identity: "registry.reside.internal/reside/contracts/greeting.v1",
  methods: {
    // Greet a name
    "greet": { body: GreetBody, returns: GreetReturns },
  },
  permissions: {
    // Call the greeter
    "greet": {},
  },
});
