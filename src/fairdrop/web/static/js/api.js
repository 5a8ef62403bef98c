/**
 * The JSON API, as every page speaks to it.
 *
 * An answer is a value, also when it says no: only the caller knows what a refusal means to the
 * person. `busy` marks the answers that promise nothing either way (no connection, 429, 503, 504, and
 * a 502 that does not come from Fairdrop itself): the same request may be sent again, and with the
 * same idempotency key it must be.
 *
 * @typedef {{type?: string, title?: string, status?: number, detail?: string, code?: string,
 *   reservation?: any, challenge?: any}} Problem  An RFC 9457 problem document.
 * @typedef {{ok: boolean, busy: boolean, status: number, body: any, problem: Problem,
 *   retryAfterMs: number}} Answer
 * @typedef {{body?: unknown, key?: string, headers?: Record<string, string>}} Request
 */

import { observe } from "./clock.js";

const TIMEOUT_MS = 10_000;
const BUSY = new Set([0, 429, 503, 504]);
const LONGEST_PAUSE_MS = 8_000;

/**
 * Sends one request. Never throws: no connection is an answer with status 0.
 *
 * @param {string} method
 * @param {string} path
 * @param {Request} [request]  `key` is the Idempotency-Key of a change.
 * @returns {Promise<Answer>}
 */
export async function call(method, path, request = {}) {
  const got = await send(method, path, request);
  if (got.problem.code !== "proof_required" || !got.problem.challenge) return got;
  // A little work first, and then the same request again; whoever solves a stale one gets a new one.
  const { solve } = await import("./proof.js");
  try {
    const proof = await solve(got.problem.challenge);
    return await send(method, path, { ...request, headers: { ...request.headers, "Fairdrop-Proof": proof } });
  } catch {
    return got;
  }
}

/** @param {string} method @param {string} path @param {Request} request @returns {Promise<Answer>} */
async function send(method, path, { body, key, headers = {} }) {
  const sent = new Headers({ Accept: "application/json", ...headers });
  if (body !== undefined) sent.set("Content-Type", "application/json");
  if (key) sent.set("Idempotency-Key", key);
  try {
    const response = await fetch(path, {
      method,
      headers: sent,
      body: body === undefined ? undefined : JSON.stringify(body),
      // Ask whether our copy is still right, instead of showing one that may be seconds old.
      cache: "no-cache",
      credentials: "same-origin",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const read = await readJson(response);
    observe(Date.parse(response.headers.get("Date") ?? ""));
    if (typeof read?.server_time_ms === "number") observe(read.server_time_ms);
    return answer(response.status, read, seconds(response.headers.get("Retry-After")));
  } catch {
    return answer(0, null, 0);
  }
}

/**
 * Repeats a request while the answer is busy, ever more slowly, until there is a real one.
 *
 * @param {() => Promise<Answer>} send  Sends the same request, with the same key, each time.
 * @param {(answer: Answer) => void} onBusy  Told of each answer that promised nothing.
 * @returns {Promise<Answer>}
 */
export async function insist(send, onBusy) {
  for (let pause = 1_000; ; pause = Math.min(pause * 1.6, LONGEST_PAUSE_MS)) {
    const got = await send();
    if (!got.busy) return got;
    onBusy(got);
    await sleep(Math.max(pause, got.retryAfterMs) * (0.8 + 0.4 * Math.random()));
  }
}

/** @param {number} ms */
export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/**
 * The path of a sale and of what belongs to it. @param {string} sale  Id or slug.
 * @param {string} [rest]
 */
export function salePath(sale, rest = "") {
  return `/v1/sales/${encodeURIComponent(sale)}${rest}`;
}

/** @param {Response} response */
async function readJson(response) {
  const type = response.headers.get("Content-Type") ?? "";
  return /\bjson\b/.test(type) ? await response.json() : null;
}

/**
 * @param {number} status
 * @param {any} body
 * @param {number} retryAfterMs
 * @returns {Answer}
 */
function answer(status, body, retryAfterMs) {
  const ok = status >= 200 && status < 300;
  const problem = ok ? {} : (body ?? {});
  const busy = BUSY.has(status) || (status === 502 && !problem.code);
  return { ok, busy, status, body, problem, retryAfterMs };
}

/** Milliseconds of a Retry-After header in seconds; 0 when there is none. @param {string|null} text */
function seconds(text) {
  const value = Number(text);
  return Number.isFinite(value) && value > 0 ? Math.min(value, 60) * 1_000 : 0;
}
