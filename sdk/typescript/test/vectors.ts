// The test vectors of docs/wire.md, which the tests of Python read, too.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { WasmCrypto } from "cojson/crypto/WasmCrypto";

const FOLDER = process.env.RESIDE_WIRE_VECTORS ?? join(import.meta.dirname, "../../../tests/vectors/wire");

export const crypto = await WasmCrypto.create();

export function load<T>(name: string): T {
  return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8")) as T;
}
