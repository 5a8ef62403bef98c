/** The panel of an order that is not paid: the countdown, who buys, and the way to the payment. */

import { confirmed } from "./confirm.js";
import { Countdown } from "./countdown.js";
import { busyWhile, el, setText, showNotice } from "./dom.js";
import { session } from "./memory.js";
import { amount } from "./receipt.js";
import { count } from "./time.js";

/**
 * @typedef {import("./receipt.js").Order} Order
 * @typedef {{email?: string, name?: string}} Buyer
 * @typedef {{order: Order, started: boolean, returned: boolean, declinesBefore: number|null,
 *   saleLink: string|null}} Model
 *   `started`: the order exists, not only its reservation. `returned`: back from the payment page,
 *   which is a hint and no proof. `declinesBefore`: those that a message should not speak of, since
 *   something may have happened after them; null when all of them may.
 * @typedef {{pay: (buyer: Buyer) => Promise<string>, cancel: () => Promise<string>,
 *   refresh: () => void}} Actions  Each resolves to what to tell the person, "" for nothing.
 * @typedef {{element: HTMLElement, update: (model: Model) => void, stop: () => void,
 *   spoken: string}} View
 */

const CANCELLING = {
  title: "Cancel the order?",
  text: "What you hold goes back on sale at once. Nothing is taken from you.",
  yes: "Cancel the order",
  no: "Keep it",
};

/** @type {Record<string, string>} */
const DECLINES = {
  card_declined: "the bank declined the card",
  insufficient_funds: "there is not enough money on the card",
  expired_card: "the card has expired",
  incorrect_cvc: "the security code was wrong",
};

/** RESERVED: nothing paid, nothing begun. @param {Model} model @param {Actions} actions @returns {View} */
export function checkout({ order, started }, actions) {
  const parts = payingParts(actions);
  const kept = session.get("buyer") ?? {};
  const email = field("E-mail (optional)", { type: "email", name: "email", autocomplete: "email", value: kept.email ?? "", maxLength: 200 });
  const name = field("Name (optional)", { type: "text", name: "name", autocomplete: "name", value: kept.name ?? "", maxLength: 200 });
  const pay = el("button", { type: "submit", className: "button button-primary button-big" }, `Pay ${amount(order, order.total_minor)}`);
  const form = el("form", {}, !started && email.label, !started && name.label, parts.trouble, pay);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const buyer = { email: email.input.value.trim() || undefined, name: name.input.value.trim() || undefined };
    session.set("buyer", buyer);
    busyWhile(pay, "Opening the payment…", async () => showNotice(parts.trouble, await actions.pay(buyer)));
  });
  return {
    element: el(
      "div",
      {},
      el("h1", {}, "It is yours for now"),
      parts.countdown.element,
      el("p", {}, "Pay before the time is up. You are taken to the payment page and come back here."),
      form,
      parts.cancel,
    ),
    update: ({ order: now }) => parts.countdown.until(now.deadline_ms),
    stop: () => parts.countdown.stop(),
    spoken: "Your units are reserved. You can pay now.",
  };
}

/** PAYMENT_PENDING: begun, perhaps declined, perhaps only not heard of yet. @param {Model} model @param {Actions} actions @returns {View} */
export function paying(model, actions) {
  const parts = payingParts(actions);
  const title = el("h1");
  const text = el("p");
  const declined = el("p", { className: "notice notice-error", role: "alert", hidden: true });
  const spinner = el("progress", { "aria-label": "Waiting for the payment service" });
  const pay = el("button", { type: "button", className: "button button-big" });
  pay.addEventListener("click", () =>
    busyWhile(pay, "Opening the payment…", async () => showNotice(parts.trouble, await actions.pay({}))),
  );
  /** @param {Model} now */
  function update({ order, returned, declinesBefore }) {
    const { declines = 0, attempts_left: left = 0, last_decline: why } = order.payment ?? {};
    const refused = order.payment?.state !== "SUCCEEDED" && declines > (declinesBefore ?? 0);
    const checking = returned && !refused;
    setText(title, refused ? "The payment did not go through" : checking ? "Checking your payment" : "Your payment has begun");
    setText(text, refused ? "Nothing was taken. You can try again, also with another card." : checking ? CHECKING : BEGUN);
    showNotice(declined, refused ? declineWords(why, left) : "");
    const agreed = order.payment?.state === "AUTHORISED";
    if (agreed) {
      setText(title, "Your payment is being completed");
      setText(text, AGREED);
    }
    for (const part of [parts.countdown.element, pay, parts.cancel]) part.hidden = agreed;
    spinner.hidden = !checking && !agreed;
    pay.classList.toggle("button-primary", !checking);
    if (pay.getAttribute("aria-disabled") !== "true") {
      setText(pay, refused ? "Try again" : checking ? "Back to the payment page" : "Continue to the payment");
    }
    parts.countdown.until(order.deadline_ms);
  }
  return {
    element: el("div", {}, title, parts.countdown.element, declined, spinner, text, parts.trouble, pay, parts.cancel),
    update,
    stop: () => parts.countdown.stop(),
    spoken: model.returned ? "Checking your payment." : "Your payment has begun.",
  };
}

const CHECKING = "The payment service tells us any moment. You can leave this page open or come back later; paying again never charges you twice.";
const AGREED = "Your bank has agreed and your units are yours. The money is taken in a moment; there is nothing more to do.";
const BEGUN = "Finish it on the payment page. If you have just paid, this page tells you in a moment.";

/** @param {string|null|undefined} why @param {number} left */
function declineWords(why, left) {
  const reason = DECLINES[why ?? ""] ?? (why ? `the bank said “${why.replaceAll("_", " ")}”` : "the bank declined it");
  return `Declined: ${reason}. ${left > 0 ? `You have ${count(left, "attempt")} left.` : "No attempts are left."}`;
}

/** What both views share. @param {Actions} actions */
function payingParts(actions) {
  const countdown = new Countdown({
    label: "Time left to pay",
    say: (left) => `${left} left to pay.`,
    onEnd: actions.refresh,
  });
  const trouble = el("p", { className: "notice notice-error", role: "alert", hidden: true });
  const cancel = el("button", { type: "button", className: "button button-quiet" }, "Cancel the order");
  cancel.addEventListener("click", async () => {
    if (!(await confirmed(CANCELLING))) return;
    await busyWhile(cancel, "Cancelling…", async () => showNotice(trouble, await actions.cancel()));
  });
  return { countdown, trouble, cancel };
}

/** @param {string} text @param {Record<string, any>} properties */
function field(text, properties) {
  const input = el("input", properties);
  return { input, label: el("label", { className: "field" }, text, input) };
}
