/**
 * The live figures of a sale as the console shows them.
 *
 * @typedef {{id: string, name: string, quantity: number, free: number, held: number,
 *   sold: number}} VariantFigures
 * @typedef {{mode: string, lobby: number, waiting: number, called: number, inside: number, missed: number,
 *   joined: number, left: number, done: number, served: number, tail: number, rate_per_s: number,
 *   measured_rate_per_s: number, cap: number, variants: VariantFigures[],
 *   orders: Record<string, number>, revenue_minor: number, fees_minor: number,
 *   refund_liability_minor: number, currency: string, currency_exponent: number,
 *   stock_load?: {message: string}|null}} Figures
 */

import { Chart } from "./chart.js";
import { byId, el, setText } from "./dom.js";
import { formatMoney } from "./money.js";
import { formatCount } from "./time.js";

/** @param {Figures} f @param {number} minor */
const money = (f, minor) => formatMoney(minor, f.currency, f.currency_exponent);

/** @param {number} rate */
export function formatRate(rate) {
  return `${new Intl.NumberFormat([...navigator.languages], { maximumFractionDigits: 1 }).format(rate)}/s`;
}

/** @param {Figures} f @param {"quantity"|"free"|"held"|"sold"} what */
export function units(f, what) {
  return f.variants.reduce((n, variant) => n + variant[what], 0);
}

/** Label, figure, note of each card. @type {[string, (f: Figures) => string, (f: Figures) => string][]} */
const CARDS = [
  ["Waiting", (f) => formatCount(f.waiting), (f) => `${f.lobby ? `${formatCount(f.lobby)} in the lobby, ` : ""}${formatCount(f.joined)} joined so far`],
  ["Inside", (f) => formatCount(f.inside), (f) => `${formatCount(f.called)} of them called, cap ${formatCount(f.cap)}`],
  ["Admitted", (f) => formatRate(f.measured_rate_per_s), (f) => `set to ${formatRate(f.rate_per_s)}`],
  ["Missed", (f) => formatCount(f.missed), (f) => `${formatCount(f.left)} left, ${formatCount(f.done)} done`],
  ["Sold", (f) => formatCount(units(f, "sold")), (f) => `of ${formatCount(units(f, "quantity"))} units`],
  ["Held", (f) => formatCount(units(f, "held")), (f) => `${formatCount(units(f, "free"))} free`],
  ["Revenue", (f) => money(f, f.revenue_minor), (f) => `and ${money(f, f.fees_minor)} in fees`],
  ["Owed back", (f) => money(f, f.refund_liability_minor), () => "refunds on their way"],
];

export class FigureBoard {
  constructor() {
    this.cards = CARDS.map(([label, figure, note]) => {
      const value = el("dd", { className: "figure-value" });
      const small = el("dd", { className: "hint" });
      value.dataset.figure = label.toLowerCase().replaceAll(" ", "-");
      return { figure, note, value, small, element: el("div", { className: "figure" }, el("dt", {}, label), value, small) };
    });
    this.admitted = new Chart("Admitted per second", formatRate);
    this.sold = new Chart("Sold", formatCount);
    byId("figures").replaceChildren(el("dl", { className: "figure-grid" }, ...this.cards.map((card) => card.element)));
    byId("charts").replaceChildren(this.admitted.element, this.sold.element);
  }

  /** Another sale: its history is not this one's. */
  clear() {
    this.admitted.clear();
    this.sold.clear();
  }

  /** @param {Figures} f */
  update(f) {
    for (const card of this.cards) {
      setText(card.value, card.figure(f));
      setText(card.small, card.note(f));
    }
    this.admitted.add(f.measured_rate_per_s);
    this.sold.add(units(f, "sold"));
    byId("stock-table").replaceChildren(stockTable(f));
    byId("orders-table").replaceChildren(ordersTable(f));
  }
}

/** @param {Figures} f */
function stockTable(f) {
  const rows = f.variants.map((v) => [v.name, v.quantity, v.sold, v.held, v.free]);
  const total = ["All", units(f, "quantity"), units(f, "sold"), units(f, "held"), units(f, "free")];
  return table(["Variant", "Units", "Sold", "Held", "Free"], f.variants.length > 1 ? [...rows, total] : rows);
}

/** @param {Figures} f */
function ordersTable(f) {
  const rows = Object.entries(f.orders).map(([state, n]) => [stateName(state), n]);
  return rows.length > 0 ? table(["State", "Orders"], rows) : el("p", { className: "hint" }, "No orders yet.");
}

/** "PAYMENT_PENDING" → "Payment pending". @param {string} state */
function stateName(state) {
  const words = state.replaceAll("_", " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** @param {string[]} head @param {(string|number)[][]} rows */
function table(head, rows) {
  /** @param {string} text @param {number} i */
  const th = (text, i) => el("th", { scope: "col", className: i > 0 ? "number" : "" }, text);
  const body = rows.map(([name, ...numbers]) =>
    el("tr", {}, el("th", { scope: "row" }, String(name)),
      ...numbers.map((n) => el("td", { className: "number" }, formatCount(Number(n))))),
  );
  return el("table", {}, el("thead", {}, el("tr", {}, ...head.map(th))), el("tbody", {}, ...body));
}
