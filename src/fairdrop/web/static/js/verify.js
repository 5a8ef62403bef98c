/**
 * Checks a draw from its public files, as `fairdrop verify-draw` does, in the same words (W4).
 *
 * @typedef {{parameters: string, entries: string, order: string|null}} Files
 * @typedef {{fault: string, message: string}} Finding
 * @typedef {{findings: Finding[], entries: number, notes: string[], entry: string|null,
 *   number: string|null, place: number|null}} Verdict
 * @typedef {{format: string, sale: {id: string}, commitment: string, entries: number|null,
 *   root: string, seed: string, beacon: Record<string, any>, keys?: JsonWebKey[]}} Claims
 * @typedef {(share: number) => void} Progress
 */

import { commitment, drawKey, hashOfHex, merkleRoot, numbers, rootOfPath } from "./lottery.js";
import { readReceipt } from "./entries.js";

const FORMAT = "fairdrop-draw-v1";
const HASH = /^[0-9a-f]{64}$/;
const ENTRY = /^[A-Za-z0-9_-]{22}$/;
const SOME = 64;
const ONLY_ONE = "Only this entry was checked: its place, the others and their number take the whole list.";

/** @param {string} fault @param {string} message @returns {Finding} */
const finding = (fault, message) => ({ fault, message });

/**
 * @param {Files} files
 * @param {string|null} [receipt]  The text of a receipt or of a signed proof.
 * @param {Progress} [onShare]  Told how much is done, from 0 to 1.
 * @returns {Promise<Verdict>}
 */
export async function verify(files, receipt = null, onShare = () => {}) {
  /** @type {Verdict} */
  const verdict = { findings: [], entries: 0, notes: [], entry: null, number: null, place: null };
  const claims = claimsOf(files.parameters);
  if ("fault" in claims) return { ...verdict, findings: [claims] };
  const entries = files.entries.split("\n");
  if (entries.pop() !== "") {
    return { ...verdict, findings: [finding("list", "entries.txt does not end with a line break.")] };
  }
  const root = await merkleRoot(entries, (share) => onShare(share / 3));
  const order = files.order === null ? null : lines(files.order);
  const shown = new Map((order ?? []).map(([number, entry]) => [entry, number]));
  verdict.entries = entries.length;
  verdict.findings.push(...(await listOrRoot(claims, entries, root, shown)));
  verdict.findings.push(...(await seedOrCommitment(claims, [claims.root, root], shown)));
  const drawn = await numbers(await keyWith(claims, claims.root), entries, (share) => onShare((1 + 2 * share) / 3));
  verdict.findings.push(...(await beacon(claims)));
  if (order && verdict.findings.length === 0) verdict.findings.push(...compare(claims, entries, drawn, order));
  verdict.notes = notes(claims, order !== null);
  if (receipt !== null) await addReceipt(verdict, claims, entries, drawn, receipt.trim());
  return verdict;
}

/**
 * Checks one entry alone, by `draw.json` and its short proof.
 *
 * @param {string} parameters  The text of `draw.json`.
 * @param {string} receipt
 * @param {(entry: string) => Promise<string|null>} proofOf  The text of the proof; null: there is none.
 * @returns {Promise<Verdict>}
 */
export async function verifyEntry(parameters, receipt, proofOf) {
  /** @type {Verdict} */
  const verdict = { findings: [], entries: 0, notes: [], entry: null, number: null, place: null };
  const claims = claimsOf(parameters);
  if ("fault" in claims) return { ...verdict, findings: [claims] };
  verdict.entries = claims.entries ?? 0;
  const { entry, fault, problem, notes: told } = await readReceipt(receipt.trim(), claims);
  if (problem) return { ...verdict, findings: [finding(fault, problem)] };
  verdict.entry = entry;
  verdict.findings.push(...(await seedOrCommitment(claims, [claims.root], new Map())), ...(await beacon(claims)));
  const proof = ENTRY.test(entry) ? await proofOf(entry) : null;
  verdict.findings.push(...(proof === null ? [leftOut(entry)] : await path(claims, entry, proof)));
  [verdict.number] = await numbers(await keyWith(claims, claims.root), [entry]);
  verdict.notes = [...notes(claims, true), ...told, ONLY_ONE];
  return verdict;
}

/** @param {Claims} claims @param {string} entry @param {string} proof */
async function path(claims, entry, proof) {
  let root;
  try {
    const { index, path: hashes } = JSON.parse(proof);
    if (!Number.isInteger(index)) throw new TypeError("no proof");
    // The receipt says which entry, and draw.json how many there are: only the way is believed.
    root = await rootOfPath(entry, index, claims.entries ?? 0, hashes);
  } catch {
    return [finding("files", "The short proof of the entry cannot be read.")];
  }
  if (root === claims.root) return [];
  return [finding("list", `The short proof does not lead from the entry ${entry} to the published root: the entry is not in the list that the root was made of.`)];
}

/** @param {string} entry */
function leftOut(entry) {
  return finding("receipt", `The receipt's entry ${entry} is not in the list: whoever holds this receipt was left out.`);
}

/** @param {string} parameters @returns {Claims|Finding} */
function claimsOf(parameters) {
  /** @type {Claims} */
  let claims;
  try {
    claims = JSON.parse(parameters);
  } catch {
    return finding("files", "draw.json cannot be read.");
  }
  if (claims?.format !== FORMAT || !claims.sale?.id || !claims.beacon) {
    return finding("files", `draw.json is not of the form ${FORMAT}.`);
  }
  if (!claims.seed || !claims.root) {
    return finding("files", "The draw is not over: its seed is not published yet. Try again later.");
  }
  for (const value of [claims.seed, claims.root, claims.commitment]) {
    if (!HASH.test(value)) return finding("files", "draw.json cannot be read.");
  }
  return claims;
}

/** (number, entry) of each line; what is no such line has an empty number. @param {string} order @returns {[string, string][]} */
function lines(order) {
  return order.replace(/\n$/, "").split("\n").map((line) => {
    const [number, entry] = [line.slice(0, 64), line.slice(65)];
    return line[64] === " " && entry ? [number, entry] : ["", line];
  });
}

/** @param {Claims} claims @param {string} root */
function keyWith(claims, root) {
  return drawKey(claims.seed, claims.sale.id, root, `${claims.beacon.value ?? ""}`);
}

/** Whether the seed, with this root, gives most of the published numbers. @param {Claims} claims @param {string} root @param {Map<string, string>} shown */
async function fits(claims, root, shown) {
  const some = [...shown].slice(0, SOME);
  const found = await numbers(await keyWith(claims, root), some.map(([entry]) => entry));
  return some.length > 0 && 2 * some.filter(([, number], at) => number === found[at]).length > some.length;
}

/** @param {Claims} claims @param {string[]} entries @param {string} root @param {Map<string, string>} shown */
async function listOrRoot(claims, entries, root, shown) {
  if (new Set(entries).size !== entries.length) {
    return [finding("list", "An entry is in the list twice: somebody has two chances.")];
  }
  if (root === claims.root && claims.entries === entries.length) return [];
  if (await fits(claims, root, shown)) {
    return [finding("root", "The published root is not that of the list, although the numbers were drawn with the list's own root: the root was changed afterwards.")];
  }
  return [finding("list", "The list of entries does not give the published root: entries were added, removed, changed or moved after the list was closed.")];
}

/** @param {Claims} claims @param {string[]} roots @param {Map<string, string>} shown */
async function seedOrCommitment(claims, roots, shown) {
  if ((await commitment(claims.seed)) === claims.commitment) return [];
  for (const root of roots) {
    if (await fits(claims, root, shown)) {
      return [finding("commitment", "The seed that was drawn with does not fit the commitment: either the commitment was changed, or the operator drew with another seed than the one promised.")];
    }
  }
  const either = shown.size > 0 ? ", and does not give the published numbers either" : "";
  return [finding("seed", `The published seed does not fit the commitment${either}: the seed was changed.`)];
}

/** @param {Claims} claims */
async function beacon({ beacon: { proof, value } }) {
  if (!proof) return [];
  const hash = await hashOfHex(`${proof.signature}`).catch(() => "");
  return hash === value ? [] : [finding("beacon", "The beacon's value is not the hash of its signature: the value was changed, or never came from the beacon.")];
}

/** @param {Claims} claims @param {string[]} entries @param {string[]} drawn @param {[string, string][]} order */
function compare(claims, entries, drawn, order) {
  const expected = new Map(entries.map((entry, at) => [entry, drawn[at]]));
  const there = new Set(order.map(([, entry]) => entry));
  if (order.length !== entries.length || there.size !== order.length || entries.some((entry) => !there.has(entry))) {
    return [finding("order", "order.txt does not have each entry of the list exactly once: somebody was left out, put in, or has two places.")];
  }
  const wrong = order.flatMap(([number, entry], at) => (expected.get(entry) === number ? [] : [at]));
  if (wrong.length === order.length && claims.beacon.value) {
    return [finding("beacon", "No number follows from the seed, the root and the beacon's value, although seed and root are right: the beacon's value was changed.")];
  }
  if (wrong.length > 0) {
    return [finding("number", `${wrong.length} lottery number(s) are not what the draw key gives; the first is in place ${wrong[0] + 1}, of entry ${order[wrong[0]][1]}.`)];
  }
  const at = order.findIndex(([number], place) => place > 0 && order[place - 1][0] > number);
  return at < 0 ? [] : [finding("order", `The numbers are right, but not in order: place ${at + 1} has a lower number than place ${at}.`)];
}

/** @param {Claims} claims @param {boolean} hasOrder */
function notes(claims, hasOrder) {
  const found = [];
  if (!hasOrder) found.push("order.txt is not published yet; the order was computed, not compared.");
  if (claims.beacon.problem) found.push(`The beacon did not answer, and the draw was held without it: ${claims.beacon.problem}`);
  if (claims.beacon.source === "none") found.push("The draw uses no public beacon: its chance comes from the seed and the list.");
  return found;
}

/** @param {Verdict} verdict @param {Claims} claims @param {string[]} entries @param {string[]} drawn @param {string} receipt */
async function addReceipt(verdict, claims, entries, drawn, receipt) {
  const read = await readReceipt(receipt, claims);
  if (read.problem) {
    verdict.findings.push(finding(read.fault, read.problem));
    return;
  }
  verdict.entry = read.entry;
  const at = entries.indexOf(read.entry);
  if (at < 0) {
    verdict.findings.push(leftOut(read.entry));
    return;
  }
  verdict.notes.push(...read.notes);
  verdict.number = drawn[at];
  verdict.place = 1 + drawn.filter((number) => number < drawn[at]).length;
}
