/**
 * What there is, what it costs and what is left, live.
 *
 * @typedef {{id: string, product: string, name: string, price_minor: number, total: number,
 *   held: number, sold: number, free: number}} Variant
 * @typedef {{id: string, slug: string, name: string, description: string, timezone: string,
 *   opens_at: string|number|null, closes_at: string|number|null, mode: string, currency: string,
 *   currency_exponent: number, fee_bps: number, fee_step_minor: number, order_limit: number|null,
 *   buyer_limit: number|null, hold_ttl_ms: number, lobby_opens_at: string|null, lobby: number,
 *   commitment: string|null, served: number, tail: number, waiting: number,
 *   called: number, inside: number, rate_per_s: number, measured_rate_per_s: number,
 *   server_time_ms: number, variants: Variant[]}} Sale  The public document.
 */

import { el, setText } from "./dom.js";
import { feeMinor, formatMoney, formatShare } from "./money.js";
import { count, formatCount } from "./time.js";

/** Units of all variants. @param {Sale} sale @param {"total"|"held"|"sold"|"free"} what */
export function sum(sale, what) {
  return sale.variants.reduce((total, variant) => total + variant[what], 0);
}

/** @param {Sale} sale @param {number} minor */
export function price(sale, minor) {
  return formatMoney(minor, sale.currency, sale.currency_exponent);
}

/** A variant's full name; the product only where it says more. @param {Variant} variant */
export function fullName(variant) {
  if (!variant.product || variant.product === variant.name) return variant.name;
  return variant.name ? `${variant.product} – ${variant.name}` : variant.product;
}

/** "4 left", "none left, 3 may come back". @param {Variant} variant */
export function leftWords(variant) {
  if (variant.free > 0) return `${formatCount(variant.free)} left`;
  if (variant.held > 0) return `none left, ${formatCount(variant.held)} may come back`;
  return "sold out";
}

/** What the held units mean to those who wait. @param {Sale} sale */
export function stockNote(sale) {
  const held = sum(sale, "held");
  if (held === 0) return "";
  const units = count(held, "unit");
  return `${units} ${held === 1 ? "is" : "are"} held in checkouts right now. Units that are not paid in time come back.`;
}

/** The list of variants: made once, changed in place. */
export class StockList {
  /** @param {HTMLElement} list */
  constructor(list) {
    this.list = list;
    /** @type {Map<string, ReturnType<typeof row>>} */
    this.rows = new Map();
  }

  /** @param {Sale} sale */
  update(sale) {
    for (const variant of sale.variants) {
      let shown = this.rows.get(variant.id);
      if (!shown) {
        shown = row();
        this.rows.set(variant.id, shown);
        this.list.append(shown.item);
      }
      shown.update(sale, variant);
    }
    for (const [id, shown] of this.rows) {
      if (sale.variants.some((variant) => variant.id === id)) continue;
      shown.item.remove();
      this.rows.delete(id);
    }
  }
}

function row() {
  const name = el("span", { className: "variant-name" });
  const cost = el("span", { className: "variant-price" });
  const fee = el("p", { className: "hint" });
  const parts = ["sold", "held", "free"].map((kind) => el("span", { className: `bar-${kind}` }));
  const figures = el("p", { className: "variant-figures" });
  const item = el(
    "li",
    { className: "variant" },
    el("p", { className: "variant-head" }, name, cost),
    fee,
    el("div", { className: "bar", "aria-hidden": "true" }, ...parts),
    figures,
  );
  /** @param {Sale} sale @param {Variant} variant */
  function update(sale, variant) {
    setText(name, fullName(variant));
    setText(cost, price(sale, variant.price_minor));
    setText(fee, feeWords(sale, variant));
    [variant.sold, variant.held, variant.free].forEach((n, i) => {
      parts[i].style.flexGrow = String(n);
      parts[i].hidden = n === 0;
    });
    const rest = `${formatCount(variant.sold)} of ${formatCount(variant.total)} sold`;
    const held = variant.held > 0 ? `${formatCount(variant.held)} in checkouts, ` : "";
    setText(figures, `${leftWords(variant)} · ${held}${rest}`);
    item.classList.toggle("gone", variant.free === 0);
  }
  return { item, update };
}

/** @param {Sale} sale @param {Variant} variant */
function feeWords(sale, variant) {
  if (sale.fee_bps === 0) return "No booking fee";
  const fee = feeMinor(variant.price_minor, sale.fee_bps, sale.fee_step_minor);
  return `plus ${price(sale, fee)} booking fee (${formatShare(sale.fee_bps)})`;
}
