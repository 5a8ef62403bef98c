/** The panel of an order that has come to an end, in plain words: what happened to units and money. */

import { el } from "./dom.js";
import { amount, tickets } from "./receipt.js";

/**
 * @typedef {import("./receipt.js").Order} Order
 * @typedef {import("./checkout.js").Model} Model
 * @typedef {import("./checkout.js").View} View
 * @typedef {{title: string, text: (order: Order) => string, tone: "good"|"calm"|"bad",
 *   units?: boolean, waits?: boolean}} Outcome  `units`: shows them. `waits`: may still change soon.
 */

/** @type {Record<string, Outcome>} */
export const OUTCOMES = {
  CONFIRMED: {
    title: "Paid. It is yours!",
    text: () => "Keep these numbers; they are yours alone. You find this page again at the same address.",
    tone: "good",
    units: true,
  },
  PAYMENT_FAILED: {
    title: "The payment did not go through",
    text: () => "Nothing was taken from you, and the units went back on sale. You can join the line again.",
    tone: "bad",
  },
  EXPIRED: {
    title: "The time to pay is over",
    text: () => "The units went back on sale. Nothing was taken from you; should a payment still arrive, it either becomes your order or comes back to you in full, by itself.",
    tone: "bad",
    waits: true,
  },
  CANCELLED: {
    title: "The order is cancelled",
    text: () => "The units went back on sale. Nothing was taken from you.",
    tone: "calm",
  },
  REFUND_PENDING: {
    title: "Your money is on its way back",
    text: (order) => `The payment of ${amount(order, order.total_minor)} came after the units had gone to somebody else. You get all of it back; there is nothing you need to do.`,
    tone: "calm",
    waits: true,
  },
  REFUNDED: {
    title: "Your money has been sent back",
    text: (order) => `${amount(order, order.refunded_minor || order.total_minor)} went back the way you paid. Your bank may take a few days to show it.`,
    tone: "calm",
  },
  PARTIALLY_REFUNDED: {
    title: "A part was paid back",
    text: (order) => `${amount(order, order.refunded_minor ?? 0)} of ${amount(order, order.total_minor)} went back the way you paid. The rest of the order stands.`,
    tone: "calm",
    units: true,
  },
  DISPUTED: {
    title: "The payment is in dispute",
    text: () => "Your bank has asked us about this payment. The shop answers it; please speak to the shop if you have questions.",
    tone: "bad",
  },
};

/** @param {Model} model @returns {View} */
export function outcome({ order, saleLink }) {
  const known = OUTCOMES[order.state] ?? { title: order.state, text: () => "Please load the page again later.", tone: "calm" };
  const back = saleLink && el("a", { className: "button", href: saleLink }, "Back to the sale");
  const element = el(
    "div",
    { className: `outcome outcome-${known.tone}` },
    el("h1", {}, known.title),
    el("p", {}, known.text(order)),
    known.units && tickets(order),
    el("p", { className: "hint" }, "Order number ", el("code", {}, order.id)),
    back,
  );
  return { element, update: () => {}, stop: () => {}, spoken: known.title };
}
