/**
 * From the waiting room into a protected shop: whoever has been admitted is handed over with a form,
 * so that the token stands in no address, no history and no log.
 */

import { el } from "./dom.js";
import { session } from "./memory.js";

/** @typedef {import("./door.js").Model} Model @typedef {import("./door.js").View} View */

const ENTER = "/.fairdrop/enter";

/** Whether this page is a waiting room in front of a shop, and not a sale's own page. */
export const isWaitingRoom = location.pathname.startsWith("/enter/");

/** Where the visit came from, if that is a shop that the operator has named. @returns {URL|null} */
export function cameFrom() {
  // It stands last, and proxies cannot escape it: whatever follows belongs to it.
  const [, raw = ""] = location.search.split(/[?&]return=/, 2);
  const wanted = raw.includes("://") ? raw : decode(raw);
  if (!URL.canParse(wanted)) return null;
  const address = new URL(wanted);
  const known = [location.origin, ...(document.body.dataset.shops ?? "").split(" ")];
  return known.includes(address.origin) ? address : null;
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}

/** Admitted, with a shop to go to. @param {Model} model @returns {View} */
export function handOver({ sale, place }) {
  const shop = cameFrom();
  if (!shop) {
    const text = "It is your turn. Go back to the shop's page that sent you here: it lets you in now.";
    return { element: el("div", {}, el("h2", {}, "You are in"), el("p", {}, text)), update() {}, stop() {}, spoken: text };
  }
  const token = place?.token ?? "";
  const go = el("button", { type: "submit", className: "button button-primary button-big" }, `Go to ${shop.host}`);
  const form = el(
    "form",
    { method: "post", action: shop.origin + ENTER },
    el("input", { type: "hidden", name: "token", value: token }),
    el("input", { type: "hidden", name: "next", value: shop.pathname + shop.search }),
    go,
  );
  // On the same host the cookie has come already: an address is enough.
  if (shop.origin === location.origin) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      location.assign(shop);
    });
  }
  // By itself once; whoever comes back by the browser's button may want to stay.
  const mark = `handed.${sale.id}`;
  if (token && session.get(mark) !== token) {
    session.set(mark, token);
    setTimeout(() => form.requestSubmit());
  }
  return {
    element: el("div", {}, el("h2", {}, "You are in"), el("p", {}, "The shop is opening for you."), form),
    update() {},
    stop() {},
    spoken: "You are in. The shop is opening for you.",
  };
}
