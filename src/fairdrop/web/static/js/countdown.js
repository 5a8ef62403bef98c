/**
 * Time running out, by the server's clock. Digits change every second for the eye; a screen reader
 * hears of it only at a few moments, since one that speaks every second says nothing else.
 */

import { serverNow } from "./clock.js";
import { announce, el, setText } from "./dom.js";
import { formatLength, spokenLength } from "./time.js";

const SPOKEN_AT_MS = [600_000, 300_000, 120_000, 60_000, 30_000, 10_000];
const URGENT_MS = 30_000;

export class Countdown {
  /**
   * @param {object} options
   * @param {string} options.label  What ends: "Time left to pay".
   * @param {(spoken: string) => string} options.say  The announcement, from e.g. "2 minutes".
   * @param {() => void} [options.onEnd]  Called once, when the time is up.
   * @param {boolean} [options.hurries]  The end is bad for the person: its last seconds look so.
   */
  constructor({ label, say, onEnd = () => {}, hurries = true }) {
    this.say = say;
    this.onEnd = onEnd;
    this.hurries = hurries;
    /** @type {number|null} */
    this.deadlineMs = null;
    this.last = Infinity;
    this.digits = el("span", { className: "countdown-digits" });
    this.element = el(
      "p",
      { className: "countdown", role: "timer", "aria-live": "off" },
      el("span", { className: "countdown-label" }, label),
      " ",
      this.digits,
    );
    this.timer = setInterval(() => this.draw(), 250);
  }

  /** @param {number|null} deadlineMs  By the server's clock; a later one starts the announcements anew. */
  until(deadlineMs) {
    if (deadlineMs !== this.deadlineMs) this.last = Infinity;
    this.deadlineMs = deadlineMs;
    this.draw();
  }

  draw() {
    if (this.deadlineMs === null) return;
    const left = Math.max(0, this.deadlineMs - serverNow());
    setText(this.digits, formatLength(left));
    this.element.classList.toggle("urgent", this.hurries && left < URGENT_MS);
    const passed = SPOKEN_AT_MS.find((at) => left <= at && at < this.last);
    if (passed !== undefined && this.last !== Infinity && left > 0) announce(this.say(spokenLength(left)));
    if (left === 0 && this.last > 0) this.onEnd();
    this.last = left;
  }

  stop() {
    clearInterval(this.timer);
  }
}
