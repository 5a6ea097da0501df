// Does what a test tells it: calls greeters, holds a lock, and describes data of its schema that another program wrote.
import { contract, Replica, ResideError } from "@reside/replica";
import { co, z } from "jazz-tools";
import { z as zod } from "zod";

const any = { body: zod.record(zod.string(), zod.unknown()), returns: zod.unknown() };
const greeting = contract({
  identity: "registry.reside.internal/reside/contracts/greeting.v1",
  methods: { greet: any, sing: any },
  permissions: { greet: {} },
});
const command = zod.object({ peer: zod.string(), method: zod.enum(["greet", "sing"]), body: any.body });
const probing = contract({
  identity: "registry.example/contracts/probing.v1",
  methods: {
    call: { body: command, returns: zod.unknown() },
    describe: { body: zod.object({ id: zod.string() }), returns: zod.unknown() },
    hold: { body: zod.object({ title: zod.string() }), returns: zod.unknown() },
    isHolding: any,
    release: any,
  },
  permissions: {},
});
const Shelf = co.map({
  title: z.string(),
  printed: z.date(),
  author: co.map({ name: z.string() }),
  tags: co.list(z.string()),
  events: co.feed(z.object({ what: z.string() })),
  cover: co.fileStream(),
});
const resolve = { author: true, tags: true, events: true, cover: true } as const;
let release: (() => void) | undefined;

async function load(id: string) {
  const shelf = await Shelf.load(id, { resolve });
  if (!shelf.$isLoaded) throw new Error(`${id} can't be loaded`);
  return shelf;
}

await new Replica(probing)
  .data(probing, async ({ publicGroup: owner }) => {
    const cover = co.fileStream().create({ owner });
    const bytes = new TextEncoder().encode("a picture");
    cover.start({ mimeType: "text/plain", fileName: "cover", totalSizeBytes: bytes.length });
    cover.push(bytes);
    cover.end();
    const [printed, author] = [new Date("2026-11-25T10:15:59.510Z"), { name: "Ada" }];
    const value = { title: "TypeScript", printed, author, tags: ["a", "b"], events: [{ what: "made" }], cover };
    const found = await Shelf.getOrCreateUnique({ unique: "shelf", owner, value, resolve });
    if (!found.$isLoaded) throw new Error("the shelf can't be loaded");
    return found;
  })
  .method(probing, "call", async ({ context }, { peer: name, method, body }) => {
    const peer = (await context.peers(greeting)).find((each) => each.name === name);
    try {
      return { code: "ok", answer: await peer!.call(method, body) };
    } catch (error) {
      if (!(error instanceof ResideError)) throw error;
      return { code: error.code, message: error.message };
    }
  })
  .method(probing, "describe", async (_call, { id }) => {
    const { title, printed, author, tags, events, cover } = await load(id);
    const chunks = cover.getChunks()?.chunks ?? [];
    return {
      title,
      printed: printed.toISOString(),
      author: author.name,
      tags: [...tags],
      events: Object.values(events.perAccount).map(({ value }) => value),
      cover: Buffer.concat(chunks).toString(),
    };
  })
  .method(probing, "hold", async ({ context }, { title }) => {
    const id = context.data.get(probing.identity)!.$jazz.id;
    await context.transaction(id, async ({ stage }) => {
      await new Promise<void>((resolved) => (release = resolved));
      release = undefined;
      const shelf = await load(id);
      stage(() => shelf.$jazz.set("title", title));
    });
  })
  .method(probing, "isHolding", () => release !== undefined)
  .method(probing, "release", () => release?.())
  .launch();
