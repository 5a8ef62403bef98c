/** The panel of a sale for people inside: choose, see the price with the fee, reserve. */

import { Countdown } from "./countdown.js";
import { busyWhile, el, setText, showNotice } from "./dom.js";
import { session } from "./memory.js";
import { feeMinor, formatShare } from "./money.js";
import { fullName, leftWords, price } from "./stock.js";
import { count, spokenLength } from "./time.js";

/**
 * @typedef {import("./stock.js").Sale} Sale
 * @typedef {import("./stock.js").Variant} Variant
 * @typedef {import("./door.js").Model} Model
 * @typedef {import("./door.js").View} View
 * @typedef {import("./door.js").Actions} Actions
 */

/** Admitted. @param {Model} model @param {Actions} actions @returns {View} */
export function basket({ sale: opened }, actions) {
  let sale = opened;
  const chosen = new Map(Object.entries(session.get(`basket.${sale.id}`) ?? {}));
  const countdown = new Countdown({
    label: "Time left to choose",
    say: (left) => `${left} left to choose.`,
    onEnd: actions.refresh,
  });
  const trouble = el("p", { className: "notice notice-error", role: "alert", hidden: true });
  const sums = el("dl", { className: "sums" });
  const reserve = el("button", { type: "submit", className: "button button-primary button-big" }, "Reserve");
  const rows = sale.variants.map((variant) => quantityRow(variant, chosen.get(variant.id) ?? 0, change));
  const form = el(
    "form",
    { noValidate: true, "aria-labelledby": "basket-title" },
    el("h2", { id: "basket-title" }, "You are in: choose"),
    countdown.element,
    el("p", { className: "hint" }, limitWords(sale)),
    el("div", { className: "quantities" }, ...rows.map((row) => row.element)),
    sums,
    trouble,
    reserve,
    el("p", { className: "hint" }, `What you reserve is held for you for ${spokenLength(sale.hold_ttl_ms)}. You pay on the next page.`),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });

  /** The lines with a quantity. */
  function lines() {
    return sale.variants
      .map((variant) => ({ variant: variant.id, quantity: chosen.get(variant.id) ?? 0 }))
      .filter((line) => line.quantity > 0);
  }

  /** @param {string} id @param {number} wanted @returns {number} what the limits allow */
  function change(id, wanted) {
    const others = lines().reduce((n, line) => (line.variant === id ? n : n + line.quantity), 0);
    const most = Math.max(0, (sale.order_limit || Infinity) - others);
    const allowed = Math.min(Math.max(0, wanted), most, 999);
    showNotice(trouble, allowed < wanted ? `One order may have ${count(sale.order_limit ?? 999, "unit")} at most.` : "");
    chosen.set(id, allowed);
    session.set(`basket.${sale.id}`, Object.fromEntries(chosen));
    draw();
    return allowed;
  }

  function draw() {
    const subtotal = sale.variants.reduce((n, v) => n + v.price_minor * (chosen.get(v.id) ?? 0), 0);
    const fee = feeMinor(subtotal, sale.fee_bps, sale.fee_step_minor);
    sums.replaceChildren(
      el("div", {}, el("dt", {}, "Subtotal"), el("dd", {}, price(sale, subtotal))),
      el("div", {}, el("dt", {}, `Booking fee (${formatShare(sale.fee_bps)})`), el("dd", {}, price(sale, fee))),
      el("div", { className: "total" }, el("dt", {}, "Total"), el("dd", {}, price(sale, subtotal + fee))),
    );
    rows.forEach((row, i) => row.update(sale, sale.variants[i] ?? null));
  }

  async function submit() {
    if (lines().length === 0) {
      showNotice(trouble, "Choose at least one.");
      rows[0]?.input.focus();
      return;
    }
    await busyWhile(reserve, "Reserving…", async () => {
      showNotice(trouble);
      showNotice(trouble, await actions.reserve(lines()));
    });
  }

  return {
    element: form,
    update(model) {
      sale = model.sale;
      countdown.until(model.place?.token_expires_ms ?? null);
      draw();
    },
    stop: () => countdown.stop(),
    spoken: "You are in. Choose what you would like and reserve it.",
  };
}

/** @param {Sale} sale */
function limitWords({ order_limit: order, buyer_limit: buyer }) {
  if (order && buyer) return `At most ${count(order, "unit")} in one order, ${buyer} per person in this sale.`;
  if (order) return `At most ${count(order, "unit")} in one order.`;
  if (buyer) return `At most ${count(buyer, "unit")} per person in this sale.`;
  return "Choose as many as you need.";
}

/**
 * One variant with a number field between a minus and a plus.
 *
 * @param {Variant} variant
 * @param {number} quantity
 * @param {(id: string, wanted: number) => number} change  Returns what the limits allow.
 */
function quantityRow(variant, quantity, change) {
  const name = fullName(variant);
  const cost = el("span", { className: "hint" });
  const input = el("input", {
    type: "number", id: `quantity-${variant.id}`, name: variant.id, min: "0", max: "999", step: "1",
    inputMode: "numeric", value: String(quantity), autocomplete: "off",
  });
  /** @param {number} wanted */
  const put = (wanted) => {
    const allowed = change(variant.id, Number.isFinite(wanted) ? Math.floor(wanted) : 0);
    if (input.value !== "" || wanted !== 0) input.value = String(allowed);
  };
  /** @param {string} sign @param {string} label @param {number} step */
  const stepper = (sign, label, step) =>
    el("button", { type: "button", className: "step", "aria-label": `${label}: ${name}`,
      onclick: () => put((Number(input.value) || 0) + step) }, sign);
  input.addEventListener("input", () => put(input.value === "" ? 0 : Number(input.value)));
  input.addEventListener("blur", () => (input.value ||= "0"));
  const element = el(
    "div",
    { className: "quantity" },
    el("label", { htmlFor: input.id }, el("span", { className: "variant-name" }, name), " ", cost),
    el("span", { className: "stepper" }, stepper("−", "One less", -1), input, stepper("+", "One more", 1)),
  );
  /** @param {Sale} sale @param {Variant|null} now */
  const update = (sale, now) => {
    if (now) setText(cost, `${price(sale, now.price_minor)}, ${leftWords(now)}`);
  };
  return { element, input, update };
}
