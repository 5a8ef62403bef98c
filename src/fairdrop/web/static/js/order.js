/**
 * The page of one order, from its reservation on. An order has the id of its reservation, so the
 * address stays the same when checkout begins; until then this tab shows what it was told when it
 * reserved.
 */

import { call, insist, salePath } from "./api.js";
import { checkout, paying } from "./checkout.js";
import { serverNow } from "./clock.js";
import { announce, byId, el, focusHeading, replaceContent, showNotice } from "./dom.js";
import { keyFor, local, session, settleKey } from "./memory.js";
import { OUTCOMES, outcome } from "./outcome.js";
import { showReceipt } from "./receipt.js";
import { explain, KEEPING_PLACE, RETRYING } from "./words.js";

/**
 * @typedef {import("./api.js").Answer} Answer
 * @typedef {import("./receipt.js").Order} Order
 * @typedef {import("./checkout.js").View} View
 * @typedef {import("./checkout.js").Buyer} Buyer
 */

const id = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const query = new URLSearchParams(location.search);
const saleName = query.get("sale") ?? session.get(`sale.of.${id}`);
const returned = query.get("paid") === "1";
const opened = performance.now();
/** For so long after the return a decline may be older than a success that is still on its way. */
const SETTLING_MS = 5_000;
const panel = byId("panel");
const trouble = byId("trouble");

/** @type {Order|null} */
let order = null;
/** The order exists in the books, not only as a reservation. */
let started = false;
/** @type {{name: string, view: View}|null} */
let shown = null;
/** @type {ReturnType<typeof setTimeout>|undefined} */
let timer;
let asking = false;
/** Nothing more will change. */
let ended = false;

if (saleName) session.set(`sale.of.${id}`, saleName);
const actions = { pay, cancel, refresh: () => tick() };

async function tick() {
  if (asking || ended) return;
  asking = true;
  clearTimeout(timer);
  await load();
  asking = false;
  render();
  if (ended) return;
  const pause = pauseMs();
  if (pause !== null) timer = setTimeout(tick, pause * (0.8 + 0.4 * Math.random()) * (document.hidden ? 4 : 1));
}

/** When to look again; null once nothing changes any more. */
function pauseMs() {
  if (!order) return 2_000;
  if (order.state === "PAYMENT_PENDING" && returned) return performance.now() - opened < 60_000 ? 1_000 : 3_000;
  if (!started) return null; // A reservation only ends, and its countdown looks then.
  if (order.state === "PAYMENT_PENDING" || order.state === "RESERVED") return 5_000;
  return OUTCOMES[order.state]?.waits ? 5_000 : null;
}

async function load() {
  const got = await call("GET", `/v1/orders/${encodeURIComponent(id)}`);
  if (got.ok) return take(got.body);
  if (got.status !== 404) return showNotice(trouble, got.busy ? KEEPING_PLACE : explain(got));
  showNotice(trouble);
  const held = order ?? session.get(`reservation.${id}`);
  if (held) {
    order = held;
    if (held.deadline_ms <= serverNow()) gone();
    return;
  }
  // Reserved in another tab: starting the order is what shows it, and doing so twice changes nothing.
  if (!saleName) return gone();
  const begun = await begin({});
  if (begun.ok) take(begun.body);
  else gone();
}

/** @param {Order} document */
function take(document) {
  order = document;
  started = true;
  session.remove(`reservation.${id}`);
  showNotice(trouble);
}

/** Neither an order nor a reservation: it ended, if we saw it before; else it was never ours. */
function gone() {
  ended = true;
  order ??= session.get(`reservation.${id}`);
  session.remove(`reservation.${id}`);
  if (order) {
    order = { ...order, state: "EXPIRED" };
    started = true;
    return;
  }
  replaceContent(
    panel,
    el(
      "div",
      {},
      el("h1", {}, "There is no such order here"),
      el("p", {}, "It may have ended before it was paid, or it belongs to another browser. Nothing was taken from you."),
      el("a", { className: "button", href: saleLink() ?? "/" }, saleLink() ? "Back to the sale" : "See all sales"),
    ),
  );
  byId("order").removeAttribute("aria-busy");
}

function saleLink() {
  const name = saleName ?? order?.sale;
  return name ? `/s/${encodeURIComponent(name)}` : null;
}

/**
 * Starts the order if that is still to be done, then goes to the payment page.
 *
 * @param {Buyer} buyer
 * @returns {Promise<string>} what to tell the person
 */
async function pay(buyer) {
  if (!started) {
    const begun = await begin(buyer);
    if (!begun.ok) return refused(begun);
    take(begun.body);
  }
  const got = await change("POST", `/v1/orders/${encodeURIComponent(id)}/pay`, `pay.${id}`);
  if (!got.ok) return refused(got);
  take(got.body);
  session.set(`declines.${id}`, order?.payment?.declines ?? 0);
  const url = webAddress(order?.payment?.url);
  if (!url) {
    render();
    return "";
  }
  location.assign(url);
  return new Promise(() => {}); // Busy until the payment page is there.
}

/** Makes the reservation an order. @param {Buyer} buyer */
function begin(buyer) {
  const body = { reservation: id, ...buyer };
  return change("POST", salePath(saleName ?? order?.sale ?? "", "/orders"), `order.${id}`, { body });
}

/** @returns {Promise<string>} */
async function cancel() {
  const path = started ? `/v1/orders/${encodeURIComponent(id)}/cancel`
    : salePath(saleName ?? order?.sale ?? "", `/reservations/${encodeURIComponent(id)}`);
  const got = await change(started ? "POST" : "DELETE", path, `cancel.${id}`);
  if (!got.ok) return refused(got);
  if (started) take(got.body);
  else if (order) {
    order = { ...order, state: "CANCELLED" };
    started = ended = true; // A reservation given back leaves nothing to ask for.
    session.remove(`reservation.${id}`);
  }
  if (order?.sale) local.remove(`order.${order.sale}`);
  clearTimeout(timer);
  render();
  return "";
}

/**
 * A change, repeated with one key until the server has answered it.
 *
 * @param {string} method
 * @param {string} path
 * @param {string} operation
 * @param {{body?: unknown, headers?: Record<string, string>}} [request]
 */
async function change(method, path, operation, request = {}) {
  const key = keyFor(operation, request.body ?? null);
  const got = await insist(
    () => call(method, path, { ...request, key }),
    () => showNotice(trouble, RETRYING),
  );
  settleKey(operation);
  showNotice(trouble);
  return got;
}

/** A refusal may mean that the order has moved on: look, then say why. @param {Answer} got */
async function refused(got) {
  await tick();
  return explain(got);
}

/** An address that a browser may be sent to, and no script in disguise. @param {string|null|undefined} text */
function webAddress(text) {
  if (!text) return null;
  const url = new URL(text, location.href);
  return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
}

/** How many declines to pass over in silence. */
function declinesBefore() {
  if (!returned) return null;
  if (performance.now() - opened < SETTLING_MS) return Infinity;
  return session.get(`declines.${id}`);
}

function render() {
  if (!order) return;
  byId("order").removeAttribute("aria-busy");
  const name = order.state in OUTCOMES ? order.state : order.state === "RESERVED" ? "checkout" : "paying";
  const model = { order, started, returned, declinesBefore: declinesBefore(), saleLink: saleLink() };
  if (shown?.name !== name) {
    const said = shown !== null;
    shown?.view.stop();
    const make = name === "checkout" ? checkout : name === "paying" ? paying : outcome;
    shown = { name, view: make(model, actions) };
    replaceContent(panel, shown.view.element);
    panel.dataset.state = name;
    if (said && make === outcome) focusHeading(panel);
    else if (said) announce(shown.view.spoken);
    document.title = `${panel.querySelector("h1")?.textContent || "Your order"} – ${document.body.dataset.shop ?? ""}`;
  }
  shown.view.update(model);
  showReceipt(order);
}

document.addEventListener("visibilitychange", () => document.hidden || tick());
addEventListener("online", () => tick());
// Back from the payment page by the browser's memory of this one: start afresh.
addEventListener("pageshow", (event) => event.persisted && location.reload());
tick();
