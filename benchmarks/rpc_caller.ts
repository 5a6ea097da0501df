// The caller of benchmarks/rpc.py in TypeScript: calls a greeter, or a bare server with Node's HTTP client.
import { Agent, request } from "node:http";
import { contract, Replica } from "@reside/replica";
import { z } from "zod";
import { greeting } from "../caller/greeting.ts";

const BODY = { name: "Ada" };
const command = z.object({ target: z.string(), tasks: z.number(), seconds: z.number() });
const running = contract({
  identity: "registry.example/contracts/running.v1",
  methods: { run: { body: command, returns: z.object({ seconds: z.number(), times: z.array(z.number()) }) } },
  permissions: {},
});
const agent = new Agent({ keepAlive: true });

function bare(url: string): Promise<unknown> {
  const body = JSON.stringify(BODY);
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.once("end", () => resolve(JSON.parse(text)));
    });
    sent.once("error", reject).end(body);
  });
}

await new Replica(running)
  .method(running, "run", async ({ context }, { target, tasks, seconds }) => {
    const peer = (await context.peers(greeting)).find((each) => each.name === target);
    const once = peer ? () => peer.call("greet", BODY) : () => bare(target);
    const times: number[] = [];
    const began = performance.now();
    const goOn = async () => {
      for (let sent = began; (sent = performance.now()) < began + 1000 * seconds; ) {
        await once();
        times.push(performance.now() - sent);
      }
    };
    await Promise.all(Array.from({ length: tasks }, goOn));
    return { seconds: (performance.now() - began) / 1000, times: times.sort((a, b) => a - b) };
  })
  .launch();
