// The schemas of tests/interop/typed/models.py, in jazz-tools.
import { co, z } from "jazz-tools";

const same = { onInlineCreate: "sameAsContainer" };

export const Note = co.map({ text: z.string() });
export const Task = co.map({
  title: z.string(),
  done: z.boolean(),
  weight: z.number().optional(),
  due: z.date().optional(),
  nick: z.string().optional(),
  level: z.enum(["low", "high"]),
  score: z.number().nullable(),
  tags: z.array(z.string()),
  createdBy: z.string().optional(),
  note: co.optional(Note),
  get project() {
    return co.optional(Project);
  },
});
export const Project = co.map({
  name: z.string(),
  tasks: co.list(Task),
  labels: co.record(z.string(), z.string()),
  events: co.feed(z.object({ what: z.string() })),
  days: co.list(z.date()),
});
export const Page = co.map({ body: co.plainText(), image: co.optional(co.fileStream()) });
export const Theme = co.map({ color: z.string() }).withPermissions(same);
export const Settings = co.map({ language: z.string(), theme: Theme });
export const Names = co.list(z.string());
export const Cat = co.map({ type: z.literal("cat"), lives: z.number() });
export const Dog = co.map({ type: z.literal("dog"), tricks: z.array(z.string()) });
export const Home = co.map({ pet: co.discriminatedUnion("type", [Cat, Dog]) });
