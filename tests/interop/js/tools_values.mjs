// Texts, files, deletions and unique values for tools.mjs, as an application would write them.
import { Group, co, deleteCoValues, z } from "jazz-tools";

const Text = co.plainText();
const File = co.fileStream();
const Settings = co.map({ by: z.string() });
const schemas = { map: Settings, list: co.list(z.string()), feed: co.feed(z.string()) };
const plain = {
  map: (value) => value.$jazz.raw.toJSON(),
  list: (value) => value.$jazz.raw.toJSON(),
  feed: (value) => Object.values(value.$jazz.raw.toJSON()).flat(),
};

export const valueOperations = (workerOf) => {
  const group = (actor, id) => Group.load(id, { loadAs: workerOf(actor) });
  return {
    async createText({ actor, owner, text }) {
      return Text.create(text, { owner: await group(actor, owner) }).$jazz.id;
    },
    async readText({ actor, id }) {
      return (await Text.load(id, { loadAs: workerOf(actor) })).toString();
    },
    async applyText({ actor, id, text }) {
      (await Text.load(id, { loadAs: workerOf(actor) })).$jazz.applyDiff(text);
    },
    async createFile({ actor, owner, data, type, name }) {
      const file = new globalThis.File([Buffer.from(data, "base64")], name, { type });
      return (await File.createFromBlob(file, { owner: await group(actor, owner) })).$jazz.id;
    },
    async readFile({ actor, id }) {
      const blob = await File.loadAsBlob(id, { loadAs: workerOf(actor) });
      return { type: blob.type, data: Buffer.from(await blob.arrayBuffer()).toString("base64") };
    },
    // Loads the value of a name, or creates it with this content.
    async getOrCreate({ actor, owner, kind, unique, value }) {
      const made = await schemas[kind].getOrCreateUnique({ value, unique, owner: await group(actor, owner) });
      return { id: made.$jazz.id, content: plain[kind](made) };
    },
    async edited({ actor, id }) {
      const { createdAt, createdBy, lastUpdatedAt } = (await Settings.load(id, { loadAs: workerOf(actor) })).$jazz;
      return { createdAt, createdBy, lastUpdatedAt };
    },
    async deleteValue({ actor, id }) {
      await deleteCoValues(Settings, id, { loadAs: workerOf(actor) });
    },
    // "deleted", "unavailable", "unauthorized" … or "loaded".
    async loadingState({ actor, id }) {
      return (await Settings.load(id, { loadAs: workerOf(actor) })).$jazz.loadingState;
    },
  };
};
