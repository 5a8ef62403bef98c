/** The operator's console: one sale's live figures, and the levers that steer it. */

import { call } from "./api.js";
import { confirmed } from "./confirm.js";
import { busyWhile, byId, el, setText, showNotice } from "./dom.js";
import { FigureBoard } from "./figures.js";
import { keyFor, local, session, settleKey } from "./memory.js";
import { fullModeName, STEERING } from "./modes.js";
import { explain } from "./words.js";

/**
 * @typedef {import("./figures.js").Figures} Figures
 * @typedef {import("./api.js").Answer} Answer
 * @typedef {{id: string, name: string, mode: string}} Summary
 */

const ADMIN = "/admin/v1/sales";
const EVERY_MS = 1_000;
const HIDDEN_EVERY_MS = 5_000;

const signIn = /** @type {HTMLFormElement} */ (byId("sign-in"));
const keyInput = /** @type {HTMLInputElement} */ (byId("api-key"));
const choice = /** @type {HTMLSelectElement} */ (byId("sale-choice"));
const rate = /** @type {HTMLInputElement} */ (byId("pace-rate"));
const cap = /** @type {HTMLInputElement} */ (byId("pace-cap"));
const trouble = byId("trouble");
const board = new FigureBoard();

const levers = Object.entries(STEERING).map(([verb, modes]) => {
  const label = verb.charAt(0).toUpperCase() + verb.slice(1);
  const button = el("button", { type: "button", className: "button" }, verb === "close" ? `${label}…` : label);
  button.classList.toggle("button-danger", verb === "close");
  button.addEventListener("click", () => pull(button, verb));
  return { button, modes };
});
byId("controls").replaceChildren(...levers.map((lever) => lever.button), el("p", { id: "lever-note", className: "hint", role: "status" }));

/** @type {ReturnType<typeof setTimeout>|undefined} */
let timer;
/** Which round of asking is the current one: an answer of an older round is dropped. */
let round = 0;

/**
 * @param {string} method
 * @param {string} path
 * @param {{body?: unknown, key?: string}} [request]
 */
function admin(method, path, request = {}) {
  return call(method, path, { ...request, headers: { Authorization: `Bearer ${session.get("console.key") ?? ""}` } });
}

async function start() {
  if (!session.get("console.key")) return askForKey();
  const got = await admin("GET", ADMIN);
  if (got.status === 401 || got.status === 403) return askForKey("This key does not open the console. Check it and try again.");
  if (!got.ok) {
    showNotice(trouble, got.busy ? "The server does not answer. Trying again." : explain(got));
    timer = setTimeout(start, 2_000);
    return;
  }
  showNotice(trouble);
  signIn.hidden = true;
  byId("console").hidden = false;
  listSales(Array.isArray(got.body) ? got.body : got.body.sales);
}

/** @param {string} [why] */
function askForKey(why = "") {
  stop();
  session.remove("console.key");
  byId("console").hidden = true;
  signIn.hidden = false;
  showNotice(trouble);
  showNotice(byId("sign-in-trouble"), why);
  keyInput.focus();
}

/** @param {Summary[]} sales */
function listSales(sales) {
  const last = local.get("console.sale");
  choice.replaceChildren(...sales.map(({ id, name }) => el("option", { value: id, selected: id === last }, name)));
  if (sales.length === 0) {
    showNotice(trouble, "There is no sale yet. Create one with the command line or the admin API, then load this page again.");
    return;
  }
  watch();
}

/** Follows the chosen sale from now on. */
function watch() {
  stop();
  board.clear();
  local.set("console.sale", choice.value);
  rate.value = cap.value = "";
  tick(round);
}

function stop() {
  round += 1;
  clearTimeout(timer);
}

/** @param {number} mine */
async function tick(mine) {
  const got = await admin("GET", `${ADMIN}/${encodeURIComponent(choice.value)}/figures`);
  if (mine !== round) return;
  if (got.status === 401 || got.status === 403) return askForKey("The key is no longer accepted.");
  if (got.ok) show(got.body);
  showNotice(trouble, got.ok ? "" : got.busy ? "The figures do not arrive. What you see is old; trying again." : explain(got));
  byId("console").classList.toggle("stale", !got.ok);
  timer = setTimeout(() => tick(mine), document.hidden ? HIDDEN_EVERY_MS : EVERY_MS);
}

/** @param {Figures} figures */
function show(figures) {
  const badge = byId("console-mode");
  badge.dataset.mode = figures.mode;
  setText(badge, fullModeName(figures.mode));
  const focused = document.activeElement;
  for (const { button, modes } of levers) button.disabled = !modes.includes(figures.mode);
  // The lever just pulled may be out of use now: its neighbour takes the focus over.
  if (levers.some(({ button }) => button === focused && button.disabled)) {
    levers.find(({ button }) => !button.disabled)?.button.focus();
  }
  // Never under the fingers of somebody who types.
  if (rate.value === "") rate.value = String(figures.rate_per_s);
  if (cap.value === "") cap.value = String(figures.cap);
  board.update(figures);
  showNotice(byId("stock-load"), figures.stock_load?.message ?? "");
}

/** @param {HTMLButtonElement} button @param {string} verb */
async function pull(button, verb) {
  const name = choice.selectedOptions[0]?.textContent ?? "";
  if (verb === "close" && !(await confirmed(closing(name)))) return;
  const note = byId("lever-note");
  await busyWhile(button, "One moment…", async () => {
    const got = await change("POST", `${ADMIN}/${encodeURIComponent(choice.value)}/${verb}`, `console.${verb}.${choice.value}`);
    setText(note, got.ok ? `Done: ${verb}.` : explain(got));
  });
}

/** @param {string} name */
function closing(name) {
  return {
    title: "Close the sale?",
    text: `Nobody else gets into “${name}”, and those who wait are sent home. Orders that were placed stay valid.`,
    yes: "Close the sale",
    no: "Keep it open",
  };
}

/** @param {SubmitEvent} event */
function changePace(event) {
  event.preventDefault();
  const note = byId("pace-note");
  const body = { rate_per_s: Number(rate.value), cap: Number(cap.value) };
  const button = /** @type {HTMLButtonElement} */ (byId("pace").querySelector("button"));
  busyWhile(button, "Changing…", async () => {
    const got = await change("PATCH", `${ADMIN}/${encodeURIComponent(choice.value)}`, `console.pace.${choice.value}`, body);
    setText(note, got.ok ? "The new pace is in force." : explain(got));
  });
}

/**
 * @param {string} method
 * @param {string} path
 * @param {string} operation
 * @param {unknown} [body]
 * @returns {Promise<Answer>}
 */
async function change(method, path, operation, body) {
  const got = await admin(method, path, { body, key: keyFor(operation, body ?? null) });
  if (!got.busy) settleKey(operation);
  return got;
}

signIn.addEventListener("submit", (event) => {
  event.preventDefault();
  session.set("console.key", keyInput.value.trim());
  keyInput.value = "";
  start();
});
byId("sign-out").addEventListener("click", () => askForKey());
choice.addEventListener("change", watch);
byId("pace").addEventListener("submit", changePace);
start();
