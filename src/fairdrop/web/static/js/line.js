/**
 * Arithmetic of the line: a person's own place by subtraction from the public document, and when
 * to ask for what (W6). Pure: numbers in, numbers out.
 *
 * @typedef {{state: string, position: number, rank: number, total_waiting?: number,
 *   wait_s?: [number, number]|null, poll_after_ms?: number, served?: number, token?: string,
 *   token_expires_ms?: number, claim_by_ms?: number, entry?: string, receipt?: string}} Place  A personal status document.
 * @typedef {{served: number, tail: number, mode: string, rate_per_s: number,
 *   measured_rate_per_s: number, outflow_per_s?: number|null, restoring_until_ms?: number|null,
 *   outlook?: {state: string, lasts_until: number}|null, epoch?: number}} LineFigures  What the public document says of the line.
 */

/** Nearer than this the exact personal status is worth a request. */
export const NEAR = 100;
const MIDDLE = 1_000;
const HIDDEN_FACTOR = 4;

/**
 * People ahead: by subtraction, but never more than the last exact count. Those who left in between
 * are still counted, so this errs on the side of a longer wait. Whoever stands before the serving
 * number came back after missing a call; for them only the exact count says anything.
 *
 * @param {Place} place
 * @param {LineFigures} line
 */
export function peopleAhead(place, line) {
  if (place.position <= line.served) return place.rank;
  return Math.max(0, Math.min(place.position - line.served - 1, place.rank));
}

/**
 * Whether to ask for the personal status now, besides the public document.
 *
 * @param {Place} place
 * @param {LineFigures} line
 * @param {number} nowMs  The server's time.
 */
export function asksPersonally(place, line, nowMs) {
  switch (place.state) {
    case "WAITING":
      return place.position <= line.served || peopleAhead(place, line) < NEAR;
    case "LOBBY":
      return line.mode !== "lobby" && line.mode !== "drawing";
    // Nothing changes for these two before their deadline, so they cost the server nothing.
    case "READY":
      return (place.claim_by_ms ?? 0) <= nowMs;
    case "ADMITTED":
      return (place.token_expires_ms ?? Infinity) <= nowMs;
    default:
      return false;
  }
}

/**
 * Milliseconds until the next request: 1 s below 100 ahead, 3 s below 1,000, else 5 s, each ±20 %,
 * so that a crowd does not ask in step; four times as long in a tab that nobody sees.
 *
 * @param {number} ahead
 * @param {number} chance  From 0 to 1.
 * @param {boolean} hidden
 */
export function pollDelayMs(ahead, chance, hidden) {
  const base = ahead < NEAR ? 1_000 : ahead < MIDDLE ? 3_000 : 5_000;
  return Math.round(base * (0.8 + 0.4 * chance) * (hidden ? HIDDEN_FACTOR : 1));
}

/**
 * The wait as a range in seconds, from the smoothed outflow (before there is one, the set pace), as
 * the server reckons it; null when nothing moves, since no number would be honest.
 *
 * @param {number} ahead
 * @param {LineFigures} line
 * @returns {[number, number]|null}
 */
export function waitRange(ahead, line) {
  if (line.mode === "paused" || line.mode === "closed") return null;
  const rate = line.outflow_per_s ?? line.rate_per_s;
  if (!(rate > 0)) return null;
  const middle = (ahead + 1) / rate;
  return [Math.floor(middle * 0.8), Math.floor(middle * 1.3) + 2];
}

/**
 * Whether units will last until this place's turn (W16): "likely", "unlikely",
 * "sold_out_may_return" or "sold_out"; "" for a sale that keeps no stock here.
 *
 * @param {Place} place
 * @param {LineFigures} line
 */
export function prospects(place, line) {
  if (!line.outlook) return "";
  if (line.outlook.state !== "available") return line.outlook.state;
  return place.position <= line.outlook.lasts_until ? "likely" : "unlikely";
}

/**
 * How far along the way to the front, from 0 to 1.
 *
 * @param {number} first  People ahead when the place was taken.
 * @param {number} ahead  People ahead now.
 */
export function progress(first, ahead) {
  return first <= 0 ? 1 : Math.min(1, Math.max(0, 1 - ahead / first));
}
