// Contracts: what the types of calls and handlers follow from.
import type { z } from "zod";
import { resolved } from "./identities.ts";

/** A contract: its identity, and the schemas of its methods and permissions. */
export interface Contract {
  identity: string;
  methods: Record<string, { body: z.ZodType; returns: z.ZodType }>;
  permissions: Record<string, { params?: z.ZodType }>;
}

/** Declare a contract; the types of calls and handlers follow from it. */
export const contract = <C extends Contract>(declared: C): C => ({ ...declared, identity: resolved(declared.identity) });

export type Method<C extends Contract> = keyof C["methods"] & string;
export type Body<C extends Contract, M extends Method<C>> = z.output<C["methods"][M]["body"]>;
export type Returns<C extends Contract, M extends Method<C>> = z.output<C["methods"][M]["returns"]>;

/** Describe what does not match a schema, without values. */
export function faultsOf(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join(".") || "itself"}: ${issue.message}`).join("; ");
}
