/**
 * Reads receipts of the lobby: the shop's own (`fdr1.…`), whose seal only the shop can check, and
 * signed proofs (a JWT), whose Ed25519 signature this browser checks (W4).
 *
 * @typedef {{fault: string, problem: string, entry: string, notes: string[]}} Read
 */

const NO_SEAL = "Only the shop can check this receipt's seal; ask it for a signed proof.";
const NOT_CHECKED = "This browser cannot check Ed25519 signatures; `fairdrop verify-draw` can.";
const OTHER_SALE = "The receipt is of another sale.";
const text = new TextDecoder("utf-8", { fatal: true });

/** @param {string} problem @param {string} [fault] @returns {Read} */
const no = (problem, fault = "receipt") => ({ fault, problem, entry: "", notes: [] });

/**
 * @param {string} receipt
 * @param {{sale: {id: string}, commitment: string, keys?: JsonWebKey[]}} claims
 * @returns {Promise<Read>}
 */
export async function readReceipt(receipt, claims) {
  return receipt.startsWith("fdr1.") ? sealed(receipt, claims) : signed(receipt, claims);
}

/** @param {string} receipt @param {{sale: {id: string}}} claims @returns {Read} */
function sealed(receipt, claims) {
  try {
    const [sale, , , kind, entry] = unpacked(fromBase64(receipt.slice(5).split(".")[0]));
    if (kind !== "e") return no("The receipt is one of the line, not of the lobby.");
    if (sale !== claims.sale.id) return no(OTHER_SALE);
    return { fault: "", problem: "", entry: `${entry}`, notes: [NO_SEAL] };
  } catch {
    return no("This is no receipt: it cannot be read.");
  }
}

/** @param {string} receipt @param {{sale: {id: string}, commitment: string, keys?: JsonWebKey[]}} claims */
async function signed(receipt, claims) {
  const forged = no("The receipt's signature is not by any of the published keys: forged.");
  try {
    const [head, body, signature] = receipt.split(".");
    const header = JSON.parse(text.decode(fromBase64(head)));
    if (header.alg !== "EdDSA" || header.typ !== "fairdrop-entry+jwt") return forged;
    const right = await isSigned(`${head}.${body}`, fromBase64(signature), claims.keys ?? []);
    if (right === false) return forged;
    const proof = JSON.parse(text.decode(fromBase64(body)));
    if (proof.sale !== claims.sale.id) return no(OTHER_SALE);
    if (proof.commitment !== claims.commitment) {
      return no("The signed receipt names another commitment than the draw: the commitment was changed after the receipt was given.", "commitment");
    }
    return { fault: "", problem: "", entry: `${proof.entry}`, notes: right === null ? [NOT_CHECKED] : [] };
  } catch {
    return forged;
  }
}

/** Null when the browser knows no Ed25519. @param {string} message @param {Uint8Array<ArrayBuffer>} signature @param {JsonWebKey[]} keys */
async function isSigned(message, signature, keys) {
  for (const { kty, crv, x } of keys) {
    let key;
    try {
      key = await crypto.subtle.importKey("jwk", { kty, crv, x }, "Ed25519", false, ["verify"]);
    } catch (error) {
      if (/** @type {Error} */ (error).name === "NotSupportedError") return null;
      continue;
    }
    if (await crypto.subtle.verify("Ed25519", key, signature, new TextEncoder().encode(message))) return true;
  }
  return false;
}

/** @param {string} base64url @returns {Uint8Array<ArrayBuffer>} */
function fromBase64(base64url) {
  const plain = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

/** As much of msgpack as a receipt has: an array of texts and numbers. @param {Uint8Array<ArrayBuffer>} bytes */
function unpacked(bytes) {
  const view = new DataView(bytes.buffer);
  let at = 0;
  const take = (/** @type {number} */ size) => ((at += size), at - size);
  const string = (/** @type {number} */ size) => text.decode(bytes.subarray(take(size), at));
  const one = () => {
    const kind = view.getUint8(take(1));
    if (kind < 0x80) return kind;
    if (kind >= 0xa0 && kind < 0xc0) return string(kind - 0xa0);
    if (kind === 0xd9) return string(view.getUint8(take(1)));
    if (kind === 0xda) return string(view.getUint16(take(2)));
    if (kind === 0xcc) return view.getUint8(take(1));
    if (kind === 0xcd) return view.getUint16(take(2));
    if (kind === 0xce) return view.getUint32(take(4));
    if (kind === 0xcf) return Number(view.getBigUint64(take(8)));
    throw new TypeError("not of a receipt");
  };
  const length = view.getUint8(take(1)) - 0x90;
  if (length !== 5) throw new TypeError("not of a receipt");
  return Array.from({ length }, one);
}
