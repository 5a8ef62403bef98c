/** The list of sales. */

import { call, insist } from "./api.js";
import { asMs } from "./clock.js";
import { byId, el, showNotice } from "./dom.js";
import { fullModeName } from "./modes.js";
import { formatMoment } from "./time.js";
import { explain, RETRYING } from "./words.js";

/** @typedef {{id: string, slug: string, name: string, mode: string, opens_at: string|number|null}} Summary */

/** @param {Summary} sale */
function card(sale) {
  const opens = asMs(sale.opens_at);
  const badge = el("span", { className: "badge" }, fullModeName(sale.mode));
  badge.dataset.mode = sale.mode;
  return el(
    "li",
    { className: "card" },
    el("h2", {}, el("a", { href: `/s/${encodeURIComponent(sale.slug)}` }, sale.name)),
    badge,
    opens !== null && el("p", { className: "hint" }, `${sale.mode === "scheduled" ? "Opens" : "Opened"} ${formatMoment(opens)}`),
  );
}

async function load() {
  const list = byId("sales");
  const trouble = byId("trouble");
  const got = await insist(() => call("GET", "/v1/sales"), () => showNotice(trouble, RETRYING));
  showNotice(trouble, got.ok ? "" : explain(got));
  /** @type {Summary[]} */
  const sales = got.ok ? got.body.sales : [];
  list.replaceChildren(...sales.map(card));
  if (sales.length === 0 && got.ok) {
    list.replaceChildren(el("li", { className: "placeholder" }, "There is no sale at the moment."));
  }
  list.removeAttribute("aria-busy");
}

load();
