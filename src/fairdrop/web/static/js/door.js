/** The panel of a sale for people who have no place in the line: when it opens, how to get in. */

import { waitRange } from "../fairdrop.js";
import { asMs } from "./clock.js";
import { Countdown } from "./countdown.js";
import { busyWhile, el, setText } from "./dom.js";
import { sum } from "./stock.js";
import { count, waitWords } from "./time.js";

/**
 * @typedef {import("./stock.js").Sale} Sale
 * @typedef {import("./line.js").Place} Place
 * @typedef {{sale: Sale, place: Place|null, first: number}} Model  `first`: people ahead at first.
 * @typedef {{element: HTMLElement, update: (model: Model) => void, stop: () => void,
 *   spoken: string}} View  One state of the panel; `spoken` is what its appearance announces.
 * @typedef {{join: () => Promise<void>, claim: () => Promise<void>, leave: () => Promise<void>,
 *   refresh: () => void, reserve: (lines: {variant: string, quantity: number}[]) => Promise<string>}} Actions
 */

const still = () => {};

/** A view that only says something. @param {string} title @param {string} text @returns {View} */
export function saying(title, text) {
  const element = el("div", {}, el("h2", {}, title), el("p", {}, text));
  return { element, update: still, stop: still, spoken: `${title}. ${text}` };
}

/** Before the opening. @param {Model} model @param {Actions} actions @returns {View} */
export function scheduled({ sale }, actions) {
  const countdown = new Countdown({
    label: "Opens in",
    say: (left) => `The sale opens in ${left}.`,
    onEnd: actions.refresh,
    hurries: false,
  });
  const known = asMs(sale.opens_at) !== null;
  const element = el(
    "div",
    {},
    el("h2", {}, "Not open yet"),
    known ? countdown.element : el("p", {}, "The opening time will be announced."),
    el("p", { className: "hint" }, "Leave this page open: the button to join appears here by itself."),
  );
  return {
    element,
    update: ({ sale: now }) => countdown.until(asMs(now.opens_at)),
    stop: () => countdown.stop(),
    spoken: "The sale is not open yet.",
  };
}

/** Open, and no place yet. @param {Model} model @param {Actions} actions @returns {View} */
export function join({ sale }, actions) {
  const lobby = sale.mode === "lobby";
  const title = lobby ? "The lobby is open" : "The sale is open";
  const button = el("button", { type: "button", className: "button button-primary button-big" });
  button.textContent = lobby ? "Join" : "Join the line";
  button.addEventListener("click", () => busyWhile(button, "Joining…", actions.join));
  const crowd = el("p");
  const hint = el("p", { className: "hint" });
  return {
    element: el("div", {}, el("h2", {}, title), crowd, button, hint),
    update({ sale: now }) {
      setText(crowd, lobby ? LOBBY : crowdWords(now));
      setText(hint, now.mode === "paused" ? PAUSED : "Joining twice changes nothing: you keep one place, the first.");
    },
    stop: still,
    spoken: `${title}. You can join.`,
  };
}

const LOBBY = "Everybody who is here before the opening has the same chance: the order is drawn at random.";
const PAUSED = "The shop has paused admission for a moment. You can join; the line moves on soon.";

/** @param {Sale} sale */
function crowdWords(sale) {
  const people = sale.waiting === 0 ? "Nobody is waiting." : `${count(sale.waiting, "person waits", "people wait")}.`;
  const range = sale.waiting === 0 ? null : waitRange(sale.waiting, sale);
  const wait = range ? ` If you join now, your turn comes in ${waitWords(range)}.` : "";
  const scarce = sum(sale, "free") === 0 ? " Everything is taken at the moment, but units may come back." : "";
  return people + wait + scarce;
}

/** Nothing to join any more. @param {Model} model @returns {View} */
export function shut({ sale }) {
  if (sale.mode === "draining") {
    return saying("The line is closed to newcomers", "Those who already wait still get their turn.");
  }
  return saying("This sale is over", "Thank you for coming. Orders that were placed stay valid.");
}

/** @returns {View} */
export function soldOut() {
  return saying("Sold out", "Every unit is paid for. Should one come back, this page shows it.");
}
