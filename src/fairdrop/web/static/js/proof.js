/**
 * Solves a proof of work (ALTCHA, version 1): the number whose SHA-256 after the salt is the one
 * given. Runs in slices, so that the page stays alive, and needs neither a worker nor a secure
 * context. No imports: a shop's own page can use it alone.
 *
 *   if (problem.code === "proof_required") headers["Fairdrop-Proof"] = await solve(problem.challenge);
 *
 * @typedef {{algorithm: string, challenge: string, maxnumber: number, salt: string, signature: string}} Challenge
 */

const SLICE_MS = 12;

/**
 * The solution as the header carries it. Rejects when there is none, or when `signal` is aborted.
 *
 * @param {Challenge} challenge
 * @param {{signal?: AbortSignal, onProgress?: (share: number) => void}} [options]
 * @returns {Promise<string>}
 */
export async function solve(challenge, { signal, onProgress } = {}) {
  if (challenge.algorithm !== "SHA-256") throw new Error(`unknown algorithm ${challenge.algorithm}`);
  const tries = digester(challenge.salt);
  const wanted = words(challenge.challenge);
  for (let number = 0, until = performance.now() + SLICE_MS; number <= challenge.maxnumber; number += 1) {
    const got = tries(number);
    if (got[0] === wanted[0] && got.every((word, i) => word === wanted[i])) {
      const { algorithm, challenge: hash, salt, signature } = challenge;
      return btoa(JSON.stringify({ algorithm, challenge: hash, number, salt, signature }));
    }
    if (number % 64 === 0 && performance.now() > until) {
      onProgress?.(number / challenge.maxnumber);
      await new Promise((resolve) => setTimeout(resolve));
      signal?.throwIfAborted();
      until = performance.now() + SLICE_MS;
    }
  }
  throw new Error("the challenge has no solution");
}

/** @param {string} hex @returns {number[]} */
function words(hex) {
  return (hex.match(/.{8}/g) ?? []).map((part) => Number.parseInt(part, 16) | 0);
}

/** SHA-256 (FIPS 180-4) of the salt and a number; whole blocks of the salt are hashed once. @param {string} salt */
function digester(salt) {
  const bytes = new TextEncoder().encode(salt);
  const whole = bytes.length - (bytes.length % 64);
  const begun = new Int32Array(START);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  for (let at = 0; at < whole; at += 64) compress(begun, view, at);
  const rest = bytes.subarray(whole);
  // The rest, the digits of a number, the end mark and the length: two blocks at the most.
  const tail = new Uint8Array(128);
  const tailView = new DataView(tail.buffer);
  const state = new Int32Array(8);
  return (/** @type {number} */ number) => {
    const digits = String(number);
    tail.fill(0);
    tail.set(rest);
    let end = rest.length;
    for (let i = 0; i < digits.length; i += 1) tail[end++] = digits.charCodeAt(i);
    const size = end > 55 ? 128 : 64;
    const bits = (whole + end) * 8;
    tail[end] = 0x80;
    tailView.setUint32(size - 4, bits);
    state.set(begun);
    for (let at = 0; at < size; at += 64) compress(state, tailView, at);
    return state;
  };
}

const START = fractions(8, 1 / 2);
const ROUND = fractions(64, 1 / 3);
const schedule = new Int32Array(64);

/** The first 32 bits of the fractional parts of roots of the first primes. @param {number} count @param {number} power */
function fractions(count, power) {
  const found = [];
  for (let n = 2; found.length < count; n += 1) {
    let prime = true;
    for (let d = 2; d * d <= n; d += 1) prime &&= n % d !== 0;
    if (prime) found.push(((n ** power % 1) * 2 ** 32) | 0);
  }
  return new Int32Array(found);
}

/** @param {number} x @param {number} n */
const turn = (x, n) => (x >>> n) | (x << (32 - n));

/** One block of 64 bytes into the state. @param {Int32Array} state @param {DataView} block @param {number} at */
function compress(state, block, at) {
  const w = schedule;
  for (let i = 0; i < 16; i += 1) w[i] = block.getInt32(at + 4 * i);
  for (let i = 16; i < 64; i += 1) {
    const x = w[i - 15];
    const y = w[i - 2];
    const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
    const s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
    w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i += 1) {
    const t1 = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[i] + w[i]) | 0;
    const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  const next = [a, b, c, d, e, f, g, h];
  for (let i = 0; i < 8; i += 1) state[i] = (state[i] + next[i]) | 0;
}
