// Base58, as in the ids and keys of Jazz.
const ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/** Digits that a number holds exactly: 58 ** 8 is less than 2 ** 53. */
const DIGITS = 8;

/** Return the bytes after a prefix; undefined: the text has another form. */
export function fromBase58(text: string, prefix: string): Buffer | undefined {
  if (!text.startsWith(prefix) || text.length > 128) return undefined;
  const digits = text.slice(prefix.length);
  let whole = 0n;
  for (let at = 0; at < digits.length; at += DIGITS) {
    const part = digits.slice(at, at + DIGITS);
    let number = 0;
    for (const digit of part) {
      const value = ALPHABET.indexOf(digit);
      if (value < 0) return undefined;
      number = number * 58 + value;
    }
    whole = whole * BigInt(58 ** part.length) + BigInt(number);
  }
  const hex = whole === 0n ? "" : whole.toString(16);
  const zeros = digits.length - digits.replace(/^1+/, "").length;
  return Buffer.concat([Buffer.alloc(zeros), Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex")]);
}
