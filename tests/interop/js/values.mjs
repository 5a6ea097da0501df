// Texts, files, deletions and unique values for driver.mjs.

import { isDeepStrictEqual } from "node:util";

// The content of a value as plain JSON; a file is [its description, its bytes in base64, whether it is finished].
export function plain(value) {
  if (value.type === "coplaintext") return value.toString();
  if (value.type !== "costream") return value.toJSON();
  if (value.headerMeta?.type === "binary") return file(value);
  const entries = Object.values(value.items).flat();
  entries.sort((a, b) => a.madeAt - b.madeAt);
  return entries.map((entry) => entry.value);
}

function file(value) {
  const found = value.getBinaryChunks(true);
  if (!found) return null;
  const { chunks, finished, ...info } = found;
  return [info, Buffer.concat(chunks).toString("base64"), finished];
}

export const valueOperations = (load) => ({
  text: async ({ actor, group, init }) => (await load(actor, group)).createPlainText(init).id,
  insertBefore: async ({ actor, id, at, text }) => void (await load(actor, id)).insertBefore(at, text),
  insertAfter: async ({ actor, id, at, text }) => void (await load(actor, id)).insertAfter(at, text),
  deleteRange: async ({ actor, id, from, to }) => void (await load(actor, id)).deleteRange({ from, to }),
  graphemes: async ({ actor, id, texts }) => {
    const value = await load(actor, id);
    return texts.map((text) => value.toGraphemes(text));
  },
  // The content at each of these times.
  atTimes: async ({ actor, id, times }) => {
    const value = await load(actor, id);
    return times.map((time) => plain(value.atTime(time)));
  },
  items: async ({ actor, id }) => (await load(actor, id)).asArray(),
  replace: async ({ actor, id, at, value }) => void (await load(actor, id)).replace(at, value),
  // One edit of a list or a text at a fraction of its current length.
  editList: async ({ actor, id, kind, at, values }) => {
    const list = await load(actor, id);
    const place = Math.floor(at * list.length());
    if (kind === "append" || list.length() === 0) list.appendItems(values);
    else if (kind === "after") list.appendItems(values, place);
    else if (kind === "prepend") list.prepend(values[0], place);
    else if (kind === "replace") list.replace(place, values[0]);
    else list.delete(place);
  },
  editText: async ({ actor, id, kind, at, text }) => {
    const value = await load(actor, id);
    const place = Math.floor(at * value.length());
    if (kind === "before" || value.length() === 0) value.insertBefore(place, text);
    else if (kind === "after") value.insertAfter(place, text);
    else value.deleteRange({ from: place, to: Math.min(place + 4, value.length()) });
  },
  restrictedList: async ({ actor, group, init }) =>
    (await load(actor, group)).createList(init, undefined, undefined, undefined, undefined, {
      restrictDeletion: true,
    }).id,
  // Values whose id follows from their name; of several writers' `init`, the earliest wins.
  unique: async ({ actor, group, type, name, init }) => {
    const owner = await load(actor, group);
    const uniqueness = { uniqueness: name };
    const first = { fww: "init" };
    if (type === "comap") return owner.createMap(init, null, "private", uniqueness, first).id;
    if (type === "colist") return owner.createList(init, null, "private", uniqueness, first).id;
    return owner.createStream(init, "private", null, uniqueness, first).id;
  },
  startFile: async ({ actor, group, info }) => {
    const value = (await load(actor, group)).createBinaryStream();
    value.startBinaryStream(info);
    return value.id;
  },
  pushChunks: async ({ actor, id, chunks, end }) => {
    const value = await load(actor, id);
    for (const chunk of chunks) value.pushBinaryStreamChunk(Buffer.from(chunk, "base64"));
    if (end) value.endBinaryStream();
  },
  // Sets keys to the results of JavaScript expressions, since JSON does not have all values.
  setExpressions: async ({ actor, id, sources }) => {
    const map = await load(actor, id);
    for (const [key, source] of Object.entries(sources)) map.set(key, (0, eval)(`(${source})`));
  },
  pushExpressions: async ({ actor, id, sources }) => {
    const list = await load(actor, id);
    list.appendItems(sources.map((source) => (0, eval)(`(${source})`)));
  },
  // Whether each key has exactly the value of an expression; 0 and -0 are different.
  areExpressions: async ({ actor, id, sources }) => {
    const map = await load(actor, id);
    return Object.entries(sources).filter(([key, source]) => !isDeepStrictEqual(map.get(key), (0, eval)(`(${source})`)));
  },
  // Runs a function body on the content of a branch, and merges the branch.
  editInBranch: async ({ actor, id, name, body }) => {
    const branch = (await load(actor, id)).core.createBranch(name);
    new Function("value", body)(branch.getCurrentContent());
    branch.mergeBranch();
  },
  // Returns the id of a branch; makes the branch if it does not exist.
  branch: async ({ actor, id, name, owner }) => {
    const branch = await (await load(actor, id)).core.node.checkoutBranch(id, name, owner);
    if (branch === "unavailable") throw new Error(`unavailable: ${id}`);
    return branch.id;
  },
  mergeBranch: async ({ actor, id }) => void (await load(actor, id)).core.mergeBranch(),
  run: async ({ actor, id, body }) => void new Function("value", body)(await load(actor, id)),
  untilFinished: async ({ actor, id }) => {
    const { core } = await load(actor, id);
    await new Promise((resolve) => {
      const unsubscribe = core.subscribe(() => {
        if (!core.getCurrentContent().isBinaryStreamEnded()) return;
        queueMicrotask(() => unsubscribe());
        resolve();
      });
    });
  },
  delete: async ({ actor, id }) => void (await load(actor, id)).core.deleteCoValue(),
  isDeleted: async ({ actor, id }) => (await load(actor, id)).core.isDeleted,
  untilDeleted: async ({ actor, id }) => {
    const { core } = await load(actor, id);
    await new Promise((resolve) => {
      const unsubscribe = core.subscribe(() => {
        if (!core.isDeleted) return;
        queueMicrotask(() => unsubscribe());
        resolve();
      });
    });
  },
  knownState: async ({ actor, id }) => (await load(actor, id)).core.knownState(),
});
