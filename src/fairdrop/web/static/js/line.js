/**
 * What the pages show of the line besides what ../fairdrop.js reckons.
 *
 * @typedef {{state: string, position: number, rank: number, total_waiting?: number,
 *   wait_s?: [number, number]|null, poll_after_ms?: number, served?: number, token?: string,
 *   token_expires_ms?: number, claim_by_ms?: number, entry?: string, receipt?: string,
 *   epoch: number}} Place  A personal status document.
 * @typedef {{served: number, tail: number, mode: string, rate_per_s: number,
 *   measured_rate_per_s: number, outflow_per_s?: number|null, restoring_until_ms?: number|null,
 *   outlook?: {state: string, lasts_until: number}|null, epoch?: number}} LineFigures  What the public document says of the line.
 */

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
