/**
 * The arithmetic of the draw in the browser (W4): commitment, Merkle root, draw key, numbers. The same
 * as the server's, with Web Crypto; the frozen test vectors hold for both.
 */

const text = new TextEncoder();
const SOME = 4_096;

/** @param {string} hex @returns {Uint8Array<ArrayBuffer>} */
export function bytesOf(hex) {
  if (!/^([0-9a-f]{2})*$/.test(hex)) throw new TypeError("not hexadecimal");
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

/** @param {ArrayBuffer|Uint8Array} bytes */
export function hexOf(bytes) {
  let hex = "";
  for (const byte of new Uint8Array(bytes)) hex += byte.toString(16).padStart(2, "0");
  return hex;
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

/** What is published of a secret seed. @param {string} seed  In hex. */
export async function commitment(seed) {
  return hexOf(await sha256(text.encode(`fairdrop-draw-v1 seed\n${seed}`)));
}

/**
 * Maps many things, some at a time, so that the page stays alive and memory stays small.
 *
 * @template T, R
 * @param {T[]} things
 * @param {(thing: T, index: number) => Promise<R>} work
 * @param {(share: number) => void} [onShare]  Told how much is done, from 0 to 1.
 * @returns {Promise<R[]>}
 */
async function mapped(things, work, onShare) {
  /** @type {R[]} */
  const found = [];
  for (let at = 0; at < things.length; at += SOME) {
    found.push(...(await Promise.all(things.slice(at, at + SOME).map(work))));
    onShare?.(found.length / things.length);
  }
  return found;
}

/**
 * The root over the entries (RFC 6962, section 2.1), in hex.
 *
 * @param {string[]} entries
 * @param {(share: number) => void} [onShare]
 */
export async function merkleRoot(entries, onShare) {
  if (entries.length === 0) return hexOf(await sha256(new Uint8Array()));
  let level = await mapped(entries, (entry) => sha256(text.encode(`\0${entry}`)), onShare);
  while (level.length > 1) {
    /** @type {Uint8Array<ArrayBuffer>[]} */
    const pairs = [];
    for (let at = 0; at + 1 < level.length; at += 2) pairs.push(node(level[at], level[at + 1]));
    const alone = level.length % 2 ? [level[level.length - 1]] : [];
    level = [...(await mapped(pairs, sha256)), ...alone];
  }
  return hexOf(level[0]);
}

/** A node of the tree. @param {Uint8Array<ArrayBuffer>} left @param {Uint8Array<ArrayBuffer>} right */
function node(left, right) {
  const found = new Uint8Array(65);
  found[0] = 1;
  found.set(left, 1);
  found.set(right, 33);
  return found;
}

/**
 * The root that a path leads to from an entry (RFC 9162, section 2.1.3.2), in hex; null when the path
 * has not the length it must have.
 *
 * @param {string} entry
 * @param {number} index  Of the entry, from 0.
 * @param {number} size  How many entries there are.
 * @param {string[]} path  Hashes in hex.
 */
export async function rootOfPath(entry, index, size, path) {
  if (!Number.isInteger(index) || index < 0 || index >= size) return null;
  let found = await sha256(text.encode(`\0${entry}`));
  const rest = path.map(bytesOf);
  for (let at = index, last = size - 1; last > 0; at = Math.floor(at / 2), last = Math.floor(last / 2)) {
    const right = at % 2 === 1;
    if (!right && at === last) continue;
    const beside = rest.shift();
    if (!beside) return null;
    found = await sha256(right ? node(beside, found) : node(found, beside));
  }
  return rest.length === 0 ? hexOf(found) : null;
}

/** @param {Uint8Array<ArrayBuffer>} bytes */
function macKey(bytes) {
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}

/**
 * The key of the draw, in hex. Seed and root are hex too.
 *
 * @param {string} seed
 * @param {string} sale
 * @param {string} root
 * @param {string} beacon
 */
export async function drawKey(seed, sale, root, beacon) {
  const message = text.encode(`fairdrop-draw-v1 key\n${sale}\n${root}\n${beacon}`);
  return hexOf(await crypto.subtle.sign("HMAC", await macKey(bytesOf(seed)), message));
}

/**
 * The lottery numbers of the entries, in hex.
 *
 * @param {string} key
 * @param {string[]} entries
 * @param {(share: number) => void} [onShare]
 */
export async function numbers(key, entries, onShare) {
  const mac = await macKey(bytesOf(key));
  const one = async (/** @type {string} */ entry) =>
    hexOf(await crypto.subtle.sign("HMAC", mac, text.encode(entry)));
  return mapped(entries, one, onShare);
}

/** The hash of bytes given in hex, in hex. @param {string} hex */
export async function hashOfHex(hex) {
  return hexOf(await sha256(bytesOf(hex)));
}
