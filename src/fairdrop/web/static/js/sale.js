/**
 * The page of one sale: one loop reads the public document, the panel shows the state of this
 * visitor, and the personal status is asked for only near the front.
 */

import { call, insist, salePath } from "./api.js";
import { basket } from "./basket.js";
import { asMs, serverNow } from "./clock.js";
import { join, scheduled, shut, soldOut } from "./door.js";
import { alarm, announce, byId, el, replaceContent, setText, showNotice } from "./dom.js";
import { handOver, isWaitingRoom } from "./handover.js";
import { asksPersonally, NEAR, peopleAhead, pollDelayMs } from "./line.js";
import { keyFor, local, session, settleKey } from "./memory.js";
import { fullModeName } from "./modes.js";
import { stockNote, StockList, sum } from "./stock.js";
import { formatCount, formatMoment, sameClock, visitorZone } from "./time.js";
import { lobby, missed, ready, waiting } from "./waiting.js";
import { explain, KEEPING_PLACE, RETRYING } from "./words.js";

/**
 * @typedef {import("./stock.js").Sale} Sale
 * @typedef {import("./line.js").Place} Place
 * @typedef {import("./door.js").View} View
 * @typedef {import("./door.js").Model} Model
 * @typedef {import("./door.js").Actions} Actions
 */

const slug = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const shop = document.body.dataset.shop ?? "";
const panel = byId("panel");
/** What is wrong at the moment; gone with the next good answer. */
const trouble = byId("trouble");
/** What came of this visitor's last doing; stays until the next one. */
const note = byId("note");
const stockList = new StockList(byId("variants"));
const VIEWS = { scheduled, join, shut, soldOut, lobby, waiting, ready, missed, basket, handOver };
/** Ahead as far as the pace of asking goes, for those who have no place. */
const FAR = 1_000;

/** @type {Sale|null} */
let sale = null;
/** @type {Place|null} */
let place = null;
let first = 0;
/** @type {{name: string, view: View}|null} */
let shown = null;
/** @type {ReturnType<typeof setTimeout>|undefined} */
let timer;
let asking = false;
/** Changes of the place that this page has made. */
let changes = 0;

/** @type {Actions} */
const actions = {
  join: () => act("POST", "/join", `join.${slug}`),
  claim: () => act("POST", "/claim", `claim.${slug}`),
  leave: () => act("DELETE", "/me", `leave.${slug}`),
  refresh: () => tick(),
  reserve,
};

/** One step of the loop; steps never overlap. */
async function tick() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  const got = await call("GET", salePath(slug));
  if (got.ok) {
    const firstLook = sale === null;
    sale = got.body;
    showNotice(trouble);
    const marked = firstLook ? local.get(`place.${got.body.id}`) : null;
    if (marked) first = marked.first ?? 0;
    const lost = place !== null && place.position > 0 && kept().epoch !== got.body.epoch;
    if (marked || lost || (place && asksPersonally(place, got.body, serverNow()))) await askPersonally();
  } else if (got.status === 404) {
    return notFound();
  } else {
    showNotice(trouble, got.busy ? KEEPING_PLACE : explain(got));
  }
  asking = false;
  render();
  timer = setTimeout(tick, pollDelayMs(distance(), Math.random(), document.hidden));
}

/** How far from the front, for the pace of asking. */
function distance() {
  if (!sale) return NEAR;
  if (place?.state === "WAITING") return peopleAhead(place, sale);
  if (place?.state === "READY" || place?.state === "ADMITTED") return 0;
  const opens = asMs(sale.opens_at);
  const soon = opens !== null && opens - serverNow() < 15_000;
  if (sale.mode === "scheduled" && soon) return 0;
  return sale.mode === "open" || sale.mode === "lobby" ? NEAR : FAR;
}

async function askPersonally() {
  const asked = changes;
  const got = await call("GET", salePath(slug, "/me"));
  // What was asked before this visitor did something says nothing about the time after it.
  if (asked !== changes) return;
  if (got.ok && got.body.state === "NOT_ENTERED" && (await takePlaceBack())) return;
  if (got.ok) accept(got.body);
  else if (got.status === 401) forgetPlace();
  else showNotice(trouble, got.busy ? KEEPING_PLACE : explain(got));
}

/** What this browser keeps of its place. @returns {{first?: number, receipt?: string, epoch?: number}} */
function kept() {
  return (sale && local.get(`place.${sale.id}`)) ?? {};
}

/**
 * The line was lost and built anew: the receipt gives the old place back (W15). Nothing of it needs
 * the visitor, who only sees that the place is there again.
 *
 * @returns {Promise<boolean>} whether the place is settled, or will be asked for again
 */
async function takePlaceBack() {
  const { receipt, epoch } = kept();
  if (!sale || !receipt || epoch === sale.epoch) return false;
  const token = session.get(`admission.${sale.id}`) ?? "";
  const got = await call("POST", salePath(slug, "/restore"), { body: { receipt, token } });
  if (!got.ok) return got.busy;
  if (got.body.state === "NOT_ENTERED") return false;
  accept(got.body);
  return true;
}

/** Takes a status document as the truth about this visitor. @param {Place} status */
function accept(status) {
  if (!sale) return;
  const before = place?.state;
  if (status.state === "NOT_ENTERED" || status.state === "CLOSED") {
    forgetPlace();
    if (before === "ADMITTED") showNotice(note, "Your time inside is over. You can join the line again.");
    if (status.state === "CLOSED") place = status;
    return;
  }
  if (status.state === "WAITING" && before !== "WAITING") first = Math.max(first, status.rank);
  place = status;
  local.set(`place.${sale.id}`, { position: status.position, first, receipt: status.receipt, epoch: sale.epoch });
  if (status.receipt && status.entry) local.set(`entry.${sale.id}`, { entry: status.entry, receipt: status.receipt });
  if (status.token) session.set(`admission.${sale.id}`, status.token);
}

function forgetPlace() {
  place = null;
  first = 0;
  if (!sale) return;
  local.remove(`place.${sale.id}`);
  session.remove(`admission.${sale.id}`);
}

/**
 * A change of this visitor's place, repeated until the server has said yes or no.
 *
 * @param {string} method
 * @param {string} rest
 * @param {string} operation
 */
async function act(method, rest, operation) {
  const key = keyFor(operation);
  showNotice(note);
  const got = await insist(
    () => call(method, salePath(slug, rest), { key, headers: rest === "/join" ? invitation() : {} }),
    () => showNotice(trouble, KEEPING_PLACE),
  );
  settleKey(operation);
  changes += 1;
  showNotice(trouble);
  showNotice(note, got.ok ? "" : explain(got));
  if (got.ok) accept(got.body);
  else await askPersonally();
  render();
  tick();
}

/** The code of an invitation that was opened as a link, `?invite=CODE`. @returns {Record<string, string>} */
function invitation() {
  const code = new URLSearchParams(location.search).get("invite");
  return code && /^[\x21-\x7e]+$/.test(code) ? { "Fairdrop-Invite": code } : {};
}

/**
 * @param {{variant: string, quantity: number}[]} lines
 * @returns {Promise<string>} what to tell the person; none once on the way to checkout
 */
async function reserve(lines) {
  if (!sale) return "";
  const operation = `reserve.${sale.id}`;
  const body = { lines };
  const headers = { "Fairdrop-Admission": session.get(`admission.${sale.id}`) ?? "" };
  const key = keyFor(operation, body);
  const got = await insist(
    () => call("POST", salePath(slug, "/reservations"), { body, key, headers }),
    () => showNotice(trouble, RETRYING),
  );
  settleKey(operation);
  showNotice(trouble);
  const held = got.ok ? got.body : got.problem.reservation;
  const id = typeof held === "string" ? held : held?.id;
  if (id) {
    local.set(`order.${sale.id}`, id);
    session.remove(`basket.${sale.id}`);
  }
  if (got.ok) {
    session.set(`reservation.${id}`, asOrder(got.body, sale));
    location.assign(orderPath(id));
    return new Promise(() => {}); // Busy until the next page is there.
  }
  if (got.status === 401 || got.status === 403) await askPersonally();
  render();
  tick();
  return explain(got);
}

/** A reservation in the shape of an order, for the page that shows it. @param {any} held @param {Sale} from */
function asOrder(held, from) {
  const lines = held.lines.map((/** @type {{variant: string}} */ line) => {
    const variant = from.variants.find(({ id }) => id === line.variant);
    return { ...line, name: variant?.name, product: variant?.product };
  });
  return { ...held, sale: from.id, currency_exponent: from.currency_exponent, lines };
}

/** @param {string} id */
function orderPath(id) {
  return `/orders/${encodeURIComponent(id)}?sale=${encodeURIComponent(slug)}`;
}

/** Which view the state of the sale and of this visitor call for. @param {Sale} now */
function viewName(now) {
  switch (place?.state) {
    case "LOBBY":
      return "lobby";
    case "WAITING":
      return now.mode === "closed" ? "shut" : "waiting";
    case "READY":
      return "ready";
    case "ADMITTED":
      return isWaitingRoom ? "handOver" : "basket";
    case "MISSED":
      return now.mode === "closed" ? "shut" : "missed";
    default:
  }
  if (now.mode === "scheduled") return "scheduled";
  if (now.mode === "draining" || now.mode === "closed") return "shut";
  return sum(now, "free") + sum(now, "held") === 0 ? "soldOut" : "join";
}

function render() {
  if (!sale) return;
  const name = /** @type {keyof typeof VIEWS} */ (viewName(sale));
  const model = { sale, place, first };
  // A lobby turns into the draw and an open door into a lobby: other words, so another view.
  const variant = `${name}.${name === "join" || name === "lobby" ? sale.mode : ""}`;
  if (shown?.name !== variant) {
    const said = shown !== null || place !== null;
    shown?.view.stop();
    shown = { name: variant, view: VIEWS[name](model, actions) };
    replaceContent(panel, shown.view.element);
    panel.dataset.state = name;
    if (said) (name === "ready" ? alarm : announce)(shown.view.spoken);
    // The turn may come while the person reads further down.
    if (name === "ready") panel.scrollIntoView({ block: "nearest" });
  }
  shown.view.update(model);
  renderFacts(sale);
  document.title = `${titlePrefix()}${sale.name} – ${shop}`;
}

function titlePrefix() {
  if (place?.state === "READY") return "● Your turn! ";
  if (place?.state === "WAITING" && sale) return `(${formatCount(peopleAhead(place, sale))} ahead) `;
  return "";
}

/** @param {Sale} now */
function renderFacts(now) {
  byId("sale").removeAttribute("aria-busy");
  setText(byId("name"), now.name);
  setText(byId("description"), now.description);
  const badge = byId("mode");
  badge.hidden = false;
  badge.dataset.mode = now.mode;
  setText(badge, fullModeName(now.mode));
  const print = JSON.stringify([now.opens_at, now.closes_at, local.get(`order.${now.id}`)]);
  const times = byId("times");
  if (times.dataset.print !== print) times.replaceChildren(...facts(now));
  times.dataset.print = print;
  byId("stock").hidden = false;
  stockList.update(now);
  setText(byId("stock-note"), stockNote(now));
}

/** The times, in the sale's zone and, where the clocks differ, in the visitor's. @param {Sale} now */
function facts(now) {
  const found = [];
  for (const [label, moment] of /** @type {const} */ ([["Opens", now.opens_at], ["Closes", now.closes_at]])) {
    const ms = asMs(moment);
    if (ms === null) continue;
    const here = sameClock(ms, now.timezone, visitorZone()) ? null
      : el("span", { className: "hint" }, `${formatMoment(ms)} where you are`);
    const there = el("time", { dateTime: new Date(ms).toISOString() }, formatMoment(ms, now.timezone));
    const zone = el("span", { className: "hint" }, now.timezone.replaceAll("_", " "));
    found.push(el("div", {}, el("dt", {}, label), el("dd", {}, there, zone, here)));
  }
  if (now.lobby_opens_at) {
    const draw = el("a", { href: `/s/${encodeURIComponent(slug)}/draw` }, "How the order is drawn");
    found.push(el("div", {}, el("dt", {}, "Lobby and draw"), el("dd", {}, draw)));
  }
  const order = local.get(`order.${now.id}`);
  if (order) found.push(el("div", {}, el("dt", {}, "Your last order"), el("dd", {}, el("a", { href: orderPath(order) }, "Open it"))));
  return found;
}

function notFound() {
  setText(byId("name"), "There is no sale at this address");
  byId("sale").removeAttribute("aria-busy");
  panel.replaceChildren(el("p", {}, "Please check the address, or ", el("a", { href: "/" }, "see all sales"), "."));
}

document.addEventListener("visibilitychange", () => document.hidden || tick());
addEventListener("online", () => tick());
// Back from checkout by the browser's memory of this page: start afresh.
addEventListener("pageshow", (event) => event.persisted && location.reload());
tick();
