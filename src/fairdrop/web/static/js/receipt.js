/** The lines and sums of an order, and the serial numbers it got. */

import { byId, el } from "./dom.js";
import { formatMoney } from "./money.js";

/**
 * @typedef {{variant: string, name?: string, product?: string, quantity: number,
 *   serials: (number|string)[], price_minor: number}} Line
 * @typedef {{url: string|null, state: string, declines: number, attempts_left: number,
 *   last_decline: string|null}} Payment
 * @typedef {{id: string, sale?: string, state: string, currency: string, currency_exponent: number,
 *   subtotal_minor: number, fee_minor: number, total_minor: number, refunded_minor?: number,
 *   deadline_ms: number, lines: Line[], payment?: Payment|null}} Order
 *   An order document, or a reservation made to look like one (state RESERVED, no payment). A
 *   payment is CREATING, OPEN, SUCCEEDED or CLOSED.
 */

/** @param {Order} order @param {number} minor */
export function amount(order, minor) {
  return formatMoney(minor, order.currency, order.currency_exponent);
}

/** @param {Line} line */
export function lineName({ product, name, variant }) {
  if (product && name && product !== name) return `${product} – ${name}`;
  return name || product || variant;
}

/** Fills the receipt below the panel. @param {Order} order */
export function showReceipt(order) {
  byId("lines").hidden = false;
  byId("receipt-lines").replaceChildren(
    ...order.lines.map((line) =>
      row(`${line.quantity} × ${lineName(line)}`, amount(order, line.quantity * line.price_minor)),
    ),
  );
  const sums = [
    row("Subtotal", amount(order, order.subtotal_minor)),
    row("Booking fee", amount(order, order.fee_minor)),
    row("Total", amount(order, order.total_minor), "total"),
  ];
  if (order.refunded_minor) sums.push(row("Paid back", amount(order, order.refunded_minor)));
  byId("receipt-sums").replaceChildren(...sums);
}

/** @param {string} label @param {string} value @param {string} [className] */
function row(label, value, className = "") {
  return el("tr", { className }, el("th", { scope: "row" }, label), el("td", { className: "number" }, value));
}

/** One card a unit, with its serial number. @param {Order} order */
export function tickets(order) {
  const cards = order.lines.flatMap((line) =>
    line.serials.map((serial) =>
      el(
        "li",
        { className: "ticket" },
        el("span", { className: "ticket-name" }, lineName(line)),
        el("span", { className: "ticket-serial" }, `No. ${serial}`),
      ),
    ),
  );
  return el("ul", { className: "tickets", "aria-label": "Your units" }, ...cards);
}
