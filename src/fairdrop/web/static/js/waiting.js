/** The panel of a sale for people in the line: the wait, the turn, the missed turn. */

import { peopleAhead, waitRange } from "../fairdrop.js";
import { confirmed } from "./confirm.js";
import { Countdown } from "./countdown.js";
import { announce, busyWhile, el, setText } from "./dom.js";
import { progress, prospects } from "./line.js";
import { count, formatCount, waitWords } from "./time.js";

/**
 * @typedef {import("./door.js").Model} Model
 * @typedef {import("./door.js").View} View
 * @typedef {import("./door.js").Actions} Actions
 * @typedef {import("./line.js").Place} Place
 */

const SPOKEN_EVERY_MS = 20_000;
const RESTORING = "The line was interrupted and everybody is getting their place back. You have yours.";
const LEAVING = {
  title: "Leave the line?",
  text: "Your place goes to the next person. If you join again, you start at the end.",
  yes: "Leave the line",
  no: "Stay",
};

const LEAVING_LOBBY = {
  title: "Leave the lobby?",
  text: "You take no part in the draw then. You can come back until the sale opens.",
  yes: "Leave the lobby",
  no: "Stay",
};

/** @param {Model} _model @param {Actions} actions @returns {View} */
export function waiting(_model, actions) {
  const ahead = el("p", { className: "big-number" });
  const aheadLabel = el("p", { className: "big-label" });
  const bar = el("progress", { max: 1, "aria-label": "Way to the front" });
  const wait = el("p", { className: "wait" });
  const details = el("p", { className: "hint" });
  const warning = el("p", { className: "notice notice-warning", hidden: true });
  const leave = el("button", { type: "button", className: "button button-quiet" }, "Leave the line");
  leave.addEventListener("click", async () => (await confirmed(LEAVING)) && actions.leave());
  let spokenAt = performance.now();

  const element = el(
    "div",
    { className: "waiting" },
    el("h2", {}, "You are in the line"),
    ahead,
    aheadLabel,
    bar,
    wait,
    warning,
    details,
    el("p", { className: "hint" }, "Your place is kept in this browser, also if you reload or lose the connection."),
    leave,
  );

  /** @param {Model} model */
  function update({ sale, place, first }) {
    if (!place) return;
    const people = peopleAhead(place, sale);
    const range = waitRange(people, sale);
    setText(ahead, formatCount(people));
    setText(aheadLabel, people === 0 ? "You are next" : people === 1 ? "person ahead of you" : "people ahead of you");
    bar.value = progress(first, people);
    const waitText = sale.restoring_until_ms ? RESTORING : paceWords(sale.mode, range);
    setText(wait, waitText);
    if (place.position < 0) setText(details, "Your invitation puts you ahead of the line.");
    else setText(details, `Your number is ${formatCount(place.position)}. Now serving ${formatCount(sale.served)}; ${count(sale.waiting, "person", "people")} in the line.`);
    setText(warning, PROSPECTS[prospects(place, sale)] ?? "");
    warning.hidden = warning.textContent === "";
    if (performance.now() - spokenAt >= SPOKEN_EVERY_MS) {
      spokenAt = performance.now();
      announce(`${count(people, "person", "people")} ahead of you. ${waitText}`);
    }
  }
  return { element, update, stop: () => {}, spoken: "You are in the line." };
}

/** @param {string} mode @param {[number, number]|null} range */
function paceWords(mode, range) {
  if (mode === "paused") return "The shop has paused admission. Your place is kept.";
  return range ? `Your turn comes in ${waitWords(range)}.` : "The line stands still at the moment.";
}

/** What the stock means to somebody in the line. @type {Record<string, string>} */
const PROSPECTS = {
  sold_out: "Everything is sold. You keep your place in case something comes back.",
  sold_out_may_return: "Everything is taken at the moment. Units that are not paid in time come back.",
  unlikely: "More is wanted ahead of you than is left. It may not last until your turn.",
};

/** Called: enter within the window. @param {Model} _model @param {Actions} actions @returns {View} */
export function ready(_model, actions) {
  const countdown = new Countdown({
    label: "Your turn is kept for",
    say: (left) => `${left} left to enter.`,
    onEnd: actions.refresh,
  });
  const enter = el("button", { type: "button", className: "button button-primary button-big" }, "Enter now");
  enter.addEventListener("click", () => busyWhile(enter, "Entering…", actions.claim));
  return {
    element: el(
      "div",
      { className: "ready" },
      el("h2", {}, "It is your turn"),
      countdown.element,
      enter,
      el("p", { className: "hint" }, "If you are late you do not lose your place, but others may go first."),
    ),
    update: ({ place }) => countdown.until(place?.claim_by_ms ?? null),
    stop: () => countdown.stop(),
    spoken: "It is your turn. Enter now.",
  };
}

/** Called, but not there. @param {Model} _model @param {Actions} actions @returns {View} */
export function missed(_model, actions) {
  const button = el("button", { type: "button", className: "button button-primary button-big" }, "Take my place back");
  button.addEventListener("click", () => busyWhile(button, "One moment…", actions.join));
  return {
    element: el(
      "div",
      {},
      el("h2", {}, "You missed your turn"),
      el("p", {}, "Nothing is lost: you keep your old number, which puts you at the front."),
      button,
    ),
    update: () => {},
    stop: () => {},
    spoken: "You missed your turn. You can take your place back.",
  };
}

/** In the lobby, or while the order is drawn. @param {Model} model @param {Actions} actions @returns {View} */
export function lobby(model, actions) {
  const leave = el("button", { type: "button", className: "button button-quiet" }, "Leave the lobby");
  leave.addEventListener("click", async () => (await confirmed(LEAVING_LOBBY)) && actions.leave());
  const crowd = el("p");
  const drawing = model.sale.mode === "drawing";
  const title = drawing ? "The order is being drawn" : "You are in the lobby";
  return {
    element: el(
      "div",
      {},
      el("h2", {}, title),
      crowd,
      el("p", { className: "hint" }, "Everybody in the lobby has the same chance. Your place appears here by itself."),
      leave,
    ),
    update: ({ sale }) => setText(crowd, sale.lobby ? `${count(sale.lobby, "person is", "people are")} here.` : ""),
    stop: () => {},
    spoken: title,
  };
}
