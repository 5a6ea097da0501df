// What the server changes at a WebSocket before cojson's transport gets it.
import { log } from "./log.mjs";

/**
 * Delay what is sent until content is stored. cojson replies to a message before it stores the content; it does both
 * synchronously. An acknowledgement then means that the content is in the database, even if the process is killed.
 */
export function sendAfterStoring(websocket) {
  const send = websocket.send.bind(websocket);
  let held = [];
  websocket.send = (data) => {
    held.push(data);
    if (held.length > 1) return;
    queueMicrotask(() => {
      const ready = held;
      held = [];
      for (const item of ready) if (websocket.readyState === websocket.OPEN) send(item);
    });
  };
}

/**
 * Return a WebSocket whose listeners for messages can't stop the server. cojson's transport throws on a frame such as
 * `5`, which is JSON and no message: that ends its connection.
 *
 * @param {object} websocket
 * @param {string} id the peer id
 * @param {(characters: number) => boolean} takes called with the length of each frame; returns whether to process it
 */
export function guarded(websocket, id, takes) {
  const addEventListener = websocket.addEventListener.bind(websocket);
  websocket.addEventListener = (type, listener, options) =>
    addEventListener(type, type !== "message" ? listener : (event) => {
      try {
        if (takes(event.data.length)) listener(event);
      } catch (error) {
        log("warning", "a frame could not be processed", { peer: id, error: String(error) });
        websocket.close(1002, "a frame could not be processed");
      }
    }, options);
  return websocket;
}
