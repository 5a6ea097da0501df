// The replica `secret` of the first implementation, moved to this package: docs/first-implementation.md.
// Its contract's data is as it was: a list of secrets, look-ups by name and id, and a group of readers for each value.
import { Replica, type Context, type Grant, type PermissionRef } from "@reside/replica";
import { Account, co, Group, z } from "jazz-tools";
import { secret } from "./contract.ts";

const Definition = co.map({ displayInfo: z.json().optional(), schema: z.json().optional() });
const Value = co.map({ value: z.json() });
const Secret = co.map({ id: z.number(), name: z.string(), definition: Definition, value: Value, owner: co.account() });
const Secrets = co.list(Secret);
const LookUp = co.map({ value: Secret });
const Data = co.map({ version: z.number(), secrets: Secrets, allValueGroup: co.group() });

/** Which role each permission gives in the group that it is about. */
const DEFINITION = { "definition:manage": "writer" } as const;
const VALUE = { "value:read": "reader", "value:read-write": "writer" } as const;
const LISTED = { "definition:read:all": "reader" } as const;
const EVERY = { "value:read:all": "reader", "value:read-write:all": "writer" } as const;
type Roles = Record<string, "reader" | "writer">;

/** The data, made at the first start of the first pod. */
async function findData(context: Context) {
  const owner = context.publicGroup;
  const find = () => Data.loadUnique("secret.v1", owner.$jazz.id, { resolve: { secrets: true, allValueGroup: true } });
  const before = await find();
  if (before.$isLoaded) return before;
  await context.transaction("secret.v1", async ({ stage }) => {
    if ((await find()).$isLoaded) return;
    const value = () => ({ version: 1, secrets: Secrets.create([], Group.create()), allValueGroup: Group.create() });
    stage(() => void Data.create(value(), { owner, unique: "secret.v1" }));
  });
  const made = await find();
  if (!made.$isLoaded) throw new Error("the data can't be loaded");
  return made;
}

const named = (name: string) => `secret.by-name.${name}`;
const resolve = { value: { definition: true, value: true } } as const;

/** The secret of a name; it is made for the first account that gets a permission on it. */
async function findSecret(context: Context, name: string, first: Account) {
  const data = await findData(context);
  const { owner } = data.$jazz;
  const find = () => LookUp.loadUnique(named(name), owner.$jazz.id, { resolve });
  const before = await find();
  if (before.$isLoaded) return before.value;
  await context.transaction(data.$jazz.id, async ({ stage }) => {
    if ((await find()).$isLoaded) return;
    stage(() => {
      const id = data.secrets.length + 1; // no other pod adds one meanwhile: this holds the lock
      const groups = { definition: Group.create(), value: Group.create(), secret: Group.create() };
      groups.definition.addMember(data.secrets.$jazz.owner, "reader");
      groups.value.addMember(data.allValueGroup);
      for (const each of [groups.definition, groups.value]) groups.secret.addMember(each, "reader");
      const [definition, value] = [Definition.create({}, groups.definition), Value.create({ value: {} }, groups.value)];
      const made = Secret.create({ id, name, definition, value, owner: first }, groups.secret);
      for (const unique of [named(name), `secret.by-id.${id}`]) LookUp.create({ value: made }, { owner, unique });
      data.secrets.$jazz.push(made);
    });
  });
  const made = await find();
  if (!made.$isLoaded) throw new Error(`secret ${name} can't be loaded`);
  return made.value;
}

/** Handlers that give an account the role of its strongest permission in a group: another one may stay in force. */
function handlers(roles: Roles, groupOf: (context: Context, ref: PermissionRef, account: Account) => Promise<Group>) {
  const align = async (context: Context, ref: PermissionRef, grant: Grant) => {
    const account = await Account.load(ref.account);
    if (!account.$isLoaded) throw new Error(`account ${ref.account} can't be loaded`);
    const holds = (permission: string) =>
      permission === ref.permission ? grant.granted : context.block.isGranted({ ...ref, permission });
    const held = Object.keys(roles).filter(holds).map((permission) => roles[permission]!);
    const group = await groupOf(context, ref, account);
    if (held.length === 0) group.removeMember(account);
    else group.addMember(account, held.includes("writer") ? "writer" : "reader");
  };
  return { granted: align, revoked: align };
}

type OwnedBy = { readonly $jazz: { readonly owner: Group } };
const part = (of: "definition" | "value") => async (context: Context, { instanceId }: PermissionRef, account: Account) => {
  if (!instanceId) throw new Error("a permission on one secret names it as its instance");
  const found = await findSecret(context, instanceId, account);
  return (found[of] as unknown as OwnedBy).$jazz.owner;
};
const definition = handlers(DEFINITION, part("definition"));
const value = handlers(VALUE, part("value"));
const listed = handlers(LISTED, async (context) => ((await findData(context)).secrets as unknown as OwnedBy).$jazz.owner);
const every = handlers(EVERY, async (context) => (await findData(context)).allValueGroup);

await new Replica(secret)
  .data(secret, findData)
  .permission(secret, "definition:manage", definition)
  .permission(secret, "definition:read:all", listed)
  .permission(secret, "value:read", value)
  .permission(secret, "value:read-write", value)
  .permission(secret, "value:read:all", every)
  .permission(secret, "value:read-write:all", every)
  .launch();
