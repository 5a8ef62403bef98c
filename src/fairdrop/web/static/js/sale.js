/**
 * The page of one sale: ../fairdrop.js keeps the place and asks or listens, the panel shows the state
 * of this visitor.
 */

import { peopleAhead, watchLine } from "../fairdrop.js";
import { insist } from "./api.js";
import { basket } from "./basket.js";
import { asMs } from "./clock.js";
import { join, scheduled, shut, soldOut } from "./door.js";
import { alarm, announce, byId, el, replaceContent, setText, showNotice } from "./dom.js";
import { handOver, isWaitingRoom } from "./handover.js";
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

/** @type {{name: string, view: View}|null} */
let shown = null;
/** What this visitor was when it was last looked. */
let before = "";

const line = watchLine({ sale: slug, onChange: look, joinHeaders: invitation, captcha });

/** @type {Actions} */
const actions = {
  join: () => act(line.join),
  claim: () => act(line.claim),
  leave: () => act(line.leave),
  refresh: () => line.refresh(true),
  reserve,
};

/** Shows what is news, and remembers what other pages ask for. */
function look() {
  const { sale, place, trouble: answer, state } = line;
  if (answer?.status === 404) return notFound();
  showNotice(trouble, answer ? (answer.busy ? KEEPING_PLACE : explain(answer)) : "");
  if (!sale) return;
  if (before === "ADMITTED" && !place) showNotice(note, "Your time inside is over. You can join the line again.");
  before = state;
  if (place?.receipt && place.entry) local.set(`entry.${sale.id}`, { entry: place.entry, receipt: place.receipt });
  if (place?.token) session.set(`admission.${sale.id}`, place.token);
  if (!place) session.remove(`admission.${sale.id}`);
  render(sale, place);
}

/** A change of this visitor's place. @param {() => Promise<import("./api.js").Answer>} change */
async function act(change) {
  showNotice(note);
  before = "";
  const got = await change();
  showNotice(note, got.ok ? "" : explain(got));
}

/** The widget of a CAPTCHA, when joining asks for one. @param {any} problem @returns {Promise<string>} */
async function captcha(problem) {
  return (await import("./captcha.js")).solve(problem);
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
  const { sale } = line;
  if (!sale) return "";
  const operation = `reserve.${sale.id}`;
  const body = { lines };
  const headers = { "Fairdrop-Admission": session.get(`admission.${sale.id}`) ?? "" };
  const key = keyFor(operation, body);
  const got = await insist(
    () => line.request("POST", "/reservations", { body, key, headers }),
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
  line.refresh(true);
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
  switch (line.state) {
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

/** @param {Sale} sale @param {Place|null} place */
function render(sale, place) {
  const name = /** @type {keyof typeof VIEWS} */ (viewName(sale));
  const model = { sale, place, first: line.first };
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
  document.title = `${titlePrefix(sale, place)}${sale.name} – ${shop}`;
}

/** @param {Sale} sale @param {Place|null} place */
function titlePrefix(sale, place) {
  if (place?.state === "READY") return "● Your turn! ";
  if (place?.state === "WAITING") return `(${formatCount(peopleAhead(place, sale))} ahead) `;
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
  line.stop();
  setText(byId("name"), "There is no sale at this address");
  byId("sale").removeAttribute("aria-busy");
  panel.replaceChildren(el("p", {}, "Please check the address, or ", el("a", { href: "/" }, "see all sales"), "."));
}

// Back from checkout by the browser's memory of this page: start afresh.
addEventListener("pageshow", (event) => event.persisted && location.reload());
line.start();
