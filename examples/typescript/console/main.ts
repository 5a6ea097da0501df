// Serve a web page that shows the replicas of the cluster, live. The page reads Jazz itself: no data passes through here.
import { readFileSync } from "node:fs";
import { contract, Replica, resolved } from "@reside/replica";
import { z } from "zod";

const ALPHA = resolved("registry.reside.internal/reside/contracts/alpha.v1");
const consoles = contract({
  identity: "registry.reside.internal/reside/contracts/console.v1",
  methods: { address: { body: z.object({}), returns: z.object({ url: z.string().nullable() }) } },
  permissions: {},
});

const file = (name: string, type: string) => ({ type, body: readFileSync(new URL(`page/${name}`, import.meta.url)) });
const page = {
  "": file("index.html", "text/html; charset=utf-8"),
  "page.css": file("page.css", "text/css"),
  "page.js": file("page.js", "text/javascript"),
};

await new Replica(consoles)
  .method(consoles, "address", ({ context }) => {
    const { externalEndpoint: outside } = context;
    return { url: outside ? `${outside}/replicas/${context.name}/` : null };
  })
  .site(({ block, externalEndpoint }) => {
    const jazz = externalEndpoint?.replace(/^http/, "ws") ?? null; // both are at the cluster's domain
    const settings = { jazz, alpha: block.requirements.get("alpha")?.[0] ?? null, contract: ALPHA };
    const json = { type: "application/json", body: JSON.stringify(settings) };
    const connect = jazz ? [jazz] : ["ws://127.0.0.1:*"]; // without a domain: a port-forward on the reader's machine
    return { files: { ...page, "settings.json": json }, connect };
  })
  .launch();
