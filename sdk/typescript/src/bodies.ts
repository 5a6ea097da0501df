// The bodies of calls in memory. A caller is known only once its whole body is there, so anybody can send one.
import type { IncomingMessage, ServerResponse } from "node:http";
import { ResideError } from "./errors.ts";

const MAX_BODY = 1 << 20;
const MAX_BODIES = 32 << 20;

interface Arriving {
  length: number;
  drop(): void;
}

/**
 * Reads bodies. Each has a maximum length, and so have all together that are in memory until their call is answered. If
 * there is no room, the one that has been arriving for the longest time is dropped, so slow ones can't keep others out.
 */
export class Bodies {
  readonly #most: number;
  readonly #arriving = new Set<Arriving>(); // the oldest first
  #held = 0;

  constructor(most = MAX_BODIES) {
    this.#most = most;
  }

  /** Return the body of a request; undefined if the caller leaves before its end. The rest of a refused body is read for
   * a limited time without being kept: if the connection ended at once, its sender might not see the answer. */
  read(request: IncomingMessage, response: ServerResponse, discardMs: number): Promise<Buffer | undefined> {
    return new Promise((resolve, reject) => {
      let chunks: Buffer[] = [];
      const free = () => {
        this.#arriving.delete(arriving);
        this.#held -= arriving.length;
        arriving.length = 0;
        chunks = [];
      };
      const refuse = (error: ResideError) => {
        request.removeAllListeners("data").resume();
        const timer = setTimeout(() => request.destroy(), discardMs);
        request.once("close", () => clearTimeout(timer));
        free();
        reject(error);
      };
      const drop = () => refuse(new ResideError("not-ready", "too many calls arrive at once: try again"));
      const arriving: Arriving = { length: 0, drop };
      this.#arriving.add(arriving);
      response.once("close", free);
      const tooLong = () => refuse(new ResideError("invalid-input", `the body is longer than ${MAX_BODY} bytes`));
      if (Number(request.headers["content-length"] ?? 0) > MAX_BODY) return tooLong();
      request.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        arriving.length += chunk.length;
        this.#held += chunk.length;
        if (arriving.length > MAX_BODY) return tooLong();
        while (this.#held > this.#most && arriving.length > 0) {
          const [oldest = arriving] = this.#arriving;
          oldest.drop();
        }
      });
      request.once("end", () => {
        this.#arriving.delete(arriving);
        resolve(Buffer.concat(chunks));
      });
      request.once("close", () => resolve(undefined)); // after `end`, it changes nothing
    });
  }
}
