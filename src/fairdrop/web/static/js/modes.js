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

/** @param {string} mode */
export function fullModeName(mode) {
  return NAMES[mode] ?? mode;
}
