/**
 * The server's time, as well as this browser can know it. Deadlines are the server's, and many a
 * phone's clock is minutes off, so no countdown here ever asks the phone's clock.
 *
 * An answer was written at the time it carries (its Date to the second, `server_time_ms` exactly)
 * or was kept by a cache since, so the server's time on arrival is that much or more: each answer
 * gives a lower bound, and the highest bound seen is the best one (off by less than the fastest
 * answer's way here). Being a bound against a clock that only runs forward, it also mends itself
 * after the device slept.
 */

export { observe, serverNow } from "../fairdrop.js";

/**
 * A moment of the API in milliseconds: it may be a number or an RFC 3339 text.
 *
 * @param {number|string|null|undefined} moment
 * @returns {number|null}
 */
export function asMs(moment) {
  if (moment === null || moment === undefined || moment === "") return null;
  const ms = typeof moment === "number" ? moment : Date.parse(moment);
  return Number.isFinite(ms) ? ms : null;
}
