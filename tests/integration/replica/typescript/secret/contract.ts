import { contract } from "@reside/replica";
import { z } from "zod";

const one = { params: z.object({ name: z.string() }) };

export const secret = contract({
  identity: "ghcr.io/exeteres/reside/contracts/secret.v1",
  methods: {},
  permissions: {
    "definition:manage": one,
    "definition:read:all": {},
    "value:read": one,
    "value:read:all": {},
    "value:read-write": one,
    "value:read-write:all": {},
  },
});
