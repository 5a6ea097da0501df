// Fixed files for browsers, below /replicas/<replica>/. Nothing is read from disk for a request, so no path leads out.
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

/** A file of a site, with its media type. */
export interface StaticFile {
  type: string;
  body: string | Buffer;
}

/** What a replica serves to browsers: files by name, `""` for the page itself, and origins that its scripts may reach. */
export interface Site {
  files: Record<string, StaticFile>;
  /** Besides the page's own origin, such as `wss://cluster.example.com`. */
  connect?: string[];
}

const NAME = /^$|^[a-z0-9][a-z0-9-]*(\.[a-z0-9-]+)+$/;
const ORIGIN = /^(https?|wss?):\/\/[a-z0-9.-]+(:([0-9]+|\*))?$/;

/** Answers a request for a file of a site; false if there is none of this path. */
export type SiteFiles = (path: string, request: IncomingMessage, response: ServerResponse) => boolean;

export function siteFiles(replica: string, { files, connect = [] }: Site): SiteFiles {
  const wrong = Object.keys(files).find((name) => !NAME.test(name)) ?? connect.find((origin) => !ORIGIN.test(origin));
  if (wrong !== undefined) throw new Error(`${wrong} is no name of a file with an extension, or no origin`);
  const base = `/replicas/${replica}`;
  const etagOf = ({ body }: StaticFile) => `"${createHash("sha256").update(body).digest("base64url")}"`;
  const found = new Map(Object.entries(files).map(([name, file]) => [`${base}/${name}`, { ...file, etag: etagOf(file) }]));
  const common = {
    "cache-control": "no-cache",
    "content-security-policy": policy(connect),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };
  return (path, request, response) => {
    const isBare = path === base;
    const file = found.get(isBare ? `${base}/` : path);
    if (!file) return false;
    const end = (status: number, headers: Record<string, string>, body: string | Buffer = "") => {
      response.writeHead(status, { ...common, ...headers }).end(body);
      return true;
    };
    if (request.method !== "GET") return end(405, { allow: "GET" });
    if (isBare) return end(308, { location: `${base}/` }); // the names in the page are relative
    const { etag, type, body } = file;
    return request.headers["if-none-match"] === etag ? end(304, { etag }) : end(200, { etag, "content-type": type }, body);
  };
}

/** `wasm-unsafe-eval` and `data:` are for the cryptography of Jazz, a WebAssembly module inside of the script. */
function policy(connect: string[]): string {
  return [
    "default-src 'none'",
    "script-src 'self' 'wasm-unsafe-eval'",
    "style-src 'self'",
    "img-src 'self'",
    ["connect-src 'self' data:", ...connect].join(" "),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}
