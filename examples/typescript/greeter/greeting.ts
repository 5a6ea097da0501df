import { contract } from "@reside/replica";
import { z } from "zod";

export const greeting = contract({
  identity: "registry.reside.internal/reside/contracts/greeting.v1",
  methods: {
    greet: {
      body: z.object({ name: z.string().default("stranger") }),
      returns: z.object({ message: z.string(), version: z.number() }),
    },
  },
  permissions: { greet: {} },
});
