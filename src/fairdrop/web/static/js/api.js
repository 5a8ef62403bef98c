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

import { backOffMs, request as send } from "../fairdrop.js";

/**
 * Sends one request, and solves a proof of work that is asked for. Never throws: no connection is an
 * answer with status 0.
 *
 * @param {string} method
 * @param {string} path
 * @param {Request} [request]  `key` is the Idempotency-Key of a change.
 * @returns {Promise<Answer>}
 */
export async function call(method, path, request = {}) {
  return send(method, path, request);
}

/**
 * Repeats a request while the answer is busy, ever more slowly, until there is a real one.
 *
 * @param {() => Promise<Answer>} send  Sends the same request, with the same key, each time.
 * @param {(answer: Answer) => void} onBusy  Told of each answer that promised nothing.
 * @returns {Promise<Answer>}
 */
export async function insist(send, onBusy) {
  for (let tries = 0; ; tries += 1) {
    const got = await send();
    if (!got.busy) return got;
    onBusy(got);
    await sleep(backOffMs(tries, Math.random(), got.retryAfterMs));
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
