// One request over HTTP: connections stay open between calls, and an error says whether the request may have been sent.
import http from "node:http";
import https from "node:https";

const CONNECT_MS = 5_000;
const ANSWER_MS = 60_000;
const MAX_ANSWER = 16 << 20;
/** Servers close idle connections after 5 s: a connection that was idle for longer than this is not used again. */
const IDLE_MS = 4_000;
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "CONNECT_TIMEOUT"]);
const agents = {
  "http:": new http.Agent({ keepAlive: true, timeout: IDLE_MS }),
  "https:": new https.Agent({ keepAlive: true, timeout: IDLE_MS }),
};

const ADDRESSES = 1_000;
const addresses = new Map<string, { isSecure: boolean; options: http.RequestOptions; prefix: string }>();

/** Return what an endpoint says about its requests; parsing it takes longer than to send one. */
function addressOf(endpoint: string) {
  const known = addresses.get(endpoint);
  if (known) return known;
  const { protocol, hostname, port, pathname } = new URL(endpoint);
  const host = hostname.replace(/^\[(.*)\]$/, "$1"); // an IPv6 address
  const made = { isSecure: protocol === "https:", options: { host, port }, prefix: pathname.replace(/\/$/, "") };
  if (addresses.size >= ADDRESSES) addresses.clear();
  addresses.set(endpoint, made);
  return made;
}

/**
 * Send a body, and return the status and the text of the answer. Redirects are not followed: a peer could lead them, with
 * the token, to any address.
 */
export function post(
  endpoint: string,
  path: string,
  body: string,
  given: http.OutgoingHttpHeaders,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { isSecure, options, prefix } = addressOf(endpoint);
    const headers = { ...given, "content-length": Buffer.byteLength(body) };
    const agent = agents[isSecure ? "https:" : "http:"];
    const whole = { ...options, method: "POST", path: prefix + encodeURI(path), agent, headers };
    const request = (isSecure ? https : http).request(whole);
    const timer = setTimeout(() => request.destroy(new Error(`no answer within ${ANSWER_MS / 1000} s`)), ANSWER_MS);
    request.once("close", () => clearTimeout(timer));
    request.once("error", reject);
    request.once("socket", (socket) => {
      if (!socket.connecting) return;
      const late = Object.assign(new Error(`no connection within ${CONNECT_MS / 1000} s`), { code: "CONNECT_TIMEOUT" });
      const connecting = setTimeout(() => request.destroy(late), CONNECT_MS);
      socket.once("connect", () => clearTimeout(connecting)).once("close", () => clearTimeout(connecting));
    });
    request.once("response", (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_ANSWER) request.destroy(new Error(`the answer is longer than ${MAX_ANSWER} bytes`));
        else chunks.push(chunk);
      });
      response.once("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      response.once("error", reject);
    });
    request.end(body);
  });
}

/** Return whether an error says that no connection was made, so that nothing was sent. */
export function isNotSent(error: unknown): boolean {
  const { code } = error instanceof Error ? (error as NodeJS.ErrnoException) : {};
  return code !== undefined && NOT_SENT.has(code);
}
