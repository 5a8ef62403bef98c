/** Money as integers in minor units: shown with the currency's own decimals, never computed with them. */

/**
 * An amount for people, in the way of their language.
 *
 * @param {number} minor  Minor units.
 * @param {string} currency  ISO 4217 code.
 * @param {number} exponent  Decimals of the currency: JPY 0, EUR 2, KWD 3.
 * @param {string|string[]} [languages]
 */
export function formatMoney(minor, currency, exponent, languages = [...navigator.languages]) {
  const format = new Intl.NumberFormat(languages, {
    style: "currency",
    currency,
    minimumFractionDigits: exponent,
    maximumFractionDigits: exponent,
  });
  return format.format(minor / 10 ** exponent);
}

/**
 * The booking fee on a subtotal, rounded half up once, as the server does it.
 *
 * @param {number} subtotalMinor
 * @param {number} feeBps  Basis points: 1,000 is 10 %.
 * @param {number} [stepMinor]  The smallest amount that the gateway can charge.
 */
export function feeMinor(subtotalMinor, feeBps, stepMinor = 1) {
  return Math.floor((subtotalMinor * feeBps + 5_000 * stepMinor) / (10_000 * stepMinor)) * stepMinor;
}

/** A share in basis points as a percentage: 1000 → "10%". @param {number} bps */
export function formatShare(bps) {
  const format = new Intl.NumberFormat([...navigator.languages], {
    style: "percent",
    maximumFractionDigits: 2,
  });
  return format.format(bps / 10_000);
}
