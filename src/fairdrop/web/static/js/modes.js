/** What a sale does at the moment, in words (W17). */

/** @type {Record<string, string>} */
const NAMES = {
  scheduled: "Not open yet",
  lobby: "Lobby open",
  drawing: "Drawing the order",
  open: "Open",
  paused: "Paused",
  draining: "Last ones in the line",
  closed: "Over",
};

/**
 * Steering and the modes in which it is possible, as the server has it.
 * @type {Record<string, string[]>}
 */
export const STEERING = {
  open: ["scheduled", "lobby", "closed"],
  pause: ["open"],
  resume: ["paused", "draining"],
  drain: ["open", "paused"],
  close: ["scheduled", "lobby", "drawing", "open", "paused", "draining"],
};

/** @param {string} mode */
export function fullModeName(mode) {
  return NAMES[mode] ?? mode;
}
