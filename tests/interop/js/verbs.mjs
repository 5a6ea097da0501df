// The operations of an actor in a program of the differential tests (interop/differential/actors.py has the same).

export const programVerbs = (actors, load, member) => ({
  group: (actor) => actors.get(actor).node.createGroup().id,
  map: async (actor, { group: id, init }) => (await load(actor, id)).createMap(init).id,
  list: async (actor, { group: id, init }) => (await load(actor, id)).createList(init).id,
  feed: async (actor, { group: id }) => (await load(actor, id)).createStream().id,
  set: async (actor, { co_id, key, value }) => void (await load(actor, co_id)).set(key, value),
  delete: async (actor, { co_id, key }) => void (await load(actor, co_id)).delete(key),
  append: async (actor, { co_id, values }) => void (await load(actor, co_id)).appendItems(values),
  async insert(actor, { co_id, at, value }) {
    const list = await load(actor, co_id);
    const length = list.asArray().length;
    const place = at % (length + 1);
    if (place === length) list.append(value);
    else list.prepend(value, place);
  },
  async remove(actor, { co_id, at }) {
    const list = await load(actor, co_id);
    const length = list.asArray().length;
    if (length > 0) list.delete(at % length);
  },
  push: async (actor, { co_id, value }) => void (await load(actor, co_id)).push(value),
  addMember: async (actor, { group: id, member: who, role }) =>
    void (await load(actor, id)).addMember(await member(actor, who), role),
  removeMember: async (actor, { group: id, member: who }) =>
    void (await load(actor, id)).removeMember(await member(actor, who)),
  extend: async (actor, { group: id, parent, role }) =>
    void (await load(actor, id)).extend(await load(actor, parent), role === "extend" ? undefined : role),
  revokeExtension: async (actor, { group: id, parent }) =>
    void (await load(actor, id)).revokeExtend(await load(actor, parent)),
  transact: async (actor, { co_id, changes, privacy, made_at, meta }) =>
    void (await load(actor, co_id)).core.makeTransaction(changes, privacy, meta, made_at),
  text: async (actor, { group: id, init }) => (await load(actor, id)).createPlainText(init).id,
  async insertText(actor, { co_id, at, text }) {
    const value = await load(actor, co_id);
    value.insertBefore(at % (value.length() + 1), text);
  },
  async deleteText(actor, { co_id, at, count }) {
    const value = await load(actor, co_id);
    const length = value.length();
    if (length > 0) value.deleteRange({ from: at % length, to: Math.min((at % length) + count, length) });
  },
  async replace(actor, { co_id, at, value }) {
    const list = await load(actor, co_id);
    const length = list.asArray().length;
    if (length > 0) list.replace(at % length, value);
  },
  createInvite: async (actor, { group: id, role }) => (await load(actor, id)).createInvite(role),
  acceptInvite: async (actor, { group: id, secret }) => void (await actors.get(actor).node.acceptInvite(id, secret)),
});
