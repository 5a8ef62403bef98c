/** What the API's refusals mean to a person, and what to do next. */

/** @typedef {import("./api.js").Answer} Answer */

export const KEEPING_PLACE =
  "The connection to the sale is interrupted. We are keeping your place and are trying again; there is nothing you need to do.";
export const RETRYING = "No answer yet. We are trying again with the same request; nothing happens twice.";

const OUTSIDE = "Your time inside is over. Join the line again to get another turn.";
const OTHER_BROWSER = "Open the sale in the browser in which you joined the line.";

/** @type {Record<string, string>} */
const WORDS = {
  sale_not_open: "The sale is not open yet. This page shows the button as soon as it is.",
  invite_required: "This sale is for invited people. Open it with the link of your invitation.",
  invite_refused: "This invitation does not count, or it was used by somebody else.",
  captcha_required: "You have not joined: the check that you are a person was not passed. You can join again.",
  too_many_requests: "Too many requests come from your address. Wait a moment and try again; your place is safe.",
  sale_closed: "The sale takes nobody in any more.",
  not_called: "It is not your turn yet. Your place is kept.",
  missed: "Your turn passed before you entered, but your place is kept: take it back.",
  sold_out: "Somebody was faster: there is not enough left of what you chose. Choose less or something else; units that others hold may come back.",
  buyer_limit: "That would be more than one person may buy in this sale. Choose fewer.",
  order_limit: "That is more than one order may have. Choose fewer.",
  already_reserved: "You already hold units in this sale. Pay for them or give them back first.",
  admission_required: OUTSIDE,
  admission_expired: OUTSIDE,
  admission_revoked: OUTSIDE,
  admission_forged: OTHER_BROWSER,
  admission_other_sale: OTHER_BROWSER,
  admission_other_buyer: OTHER_BROWSER,
  order_started: "Checkout of these units has begun already. Cancel the order instead.",
  no_reservation: "There is no such reservation of yours any more. Nothing was taken from you.",
  reservation_expired: "The time to pay is over, and the units went back on sale. Nothing was taken from you.",
  already_ordered: "Your turn has been used for an order already. Join the line again for another one.",
  units_lost: "These units turned out to be somebody else's. Nothing was taken from you; please choose again.",
  no_order: "There is no such order of yours.",
  order_not_cancellable: "This order can no longer be cancelled.",
  gateway_refused: "The payment service refused this payment. Nothing was taken from you; you can cancel the order or try again.",
  visitor_required: OTHER_BROWSER,
  order_not_payable: "This order can no longer be paid. Nothing was taken from you.",
};

/**
 * A refusal in words: what happened, and what to do.
 *
 * @param {Answer} answer
 * @returns {string}
 */
export function explain({ status, busy, problem }) {
  if (busy) return RETRYING;
  const known = problem.code ? WORDS[problem.code] : undefined;
  if (known) return known;
  if (problem.detail || problem.title) return `${problem.detail ?? problem.title}`;
  if (status >= 500) return "Something went wrong on our side. Nothing was taken from you; please try again.";
  return `That did not work (${status}). Please load the page again.`;
}
