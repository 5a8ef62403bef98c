/** The CAPTCHA of a provider, shown below the panel when joining asks for it (W18). */

import { announce, byId, el, focusHeading, setText } from "./dom.js";

/** @typedef {{provider: string, script: string, site_key: string, reason?: string}} Wanted  The problem. */

const PATIENCE_MS = 20_000;
const READY = "fairdropCaptchaReady";

/** @type {Promise<void>|null} */
let loading = null;

/**
 * Shows the widget and gives its token. Rejects when the person gives up, or when the provider's
 * script does not come; then the text that says why stays.
 *
 * @param {Wanted} wanted
 * @returns {Promise<string>}
 */
export async function solve({ provider, script, site_key: sitekey, reason }) {
  document.getElementById("captcha")?.remove();
  const text = reason === "failed"
    ? "That was not accepted. Please do it once more."
    : "Show that you are a person; then you join at once.";
  const words = el("p", { role: "status" }, text);
  const widget = el("div");
  const cancel = el("button", { type: "button", className: "button" }, "Cancel");
  const title = el("h2", { id: "captcha-title" }, "One more step");
  const section = el("section", { id: "captcha", className: "captcha", "aria-labelledby": "captcha-title" }, title, words, widget, cancel);
  byId("panel").after(section);
  focusHeading(section);
  section.scrollIntoView({ block: "nearest" });
  announce(text);
  const givenUp = new Promise((_resolve, reject) => {
    cancel.addEventListener("click", () => {
      section.remove();
      reject(new Error("given up"));
    });
  });
  try {
    await Promise.race([load(script), givenUp]);
  } catch (error) {
    setText(words, `The check could not be loaded from ${new URL(script).host}. Something in your browser or network stands in its way; then join again.`);
    cancel.remove();
    throw error;
  }
  const solved = new Promise((resolve) => {
    /** @type {any} */ (globalThis)[provider].render(widget, {
      sitekey,
      callback: resolve,
      "error-callback": () => setText(words, "The check has trouble. If it does not go on, cancel it and join again."),
    });
  });
  const token = /** @type {string} */ (await Promise.race([solved, givenUp]));
  section.remove();
  return token;
}

/** The provider's script, once. @param {string} address */
function load(address) {
  loading ??= new Promise((resolve, reject) => {
    const url = new URL(address);
    url.searchParams.set("render", "explicit");
    url.searchParams.set("onload", READY);
    /** @type {any} */ (globalThis)[READY] = resolve;
    document.head.append(el("script", { src: url.href, async: true, onerror: reject }));
    setTimeout(reject, PATIENCE_MS, new Error("no answer"));
  }).catch((error) => {
    loading = null;
    throw error;
  });
  return loading;
}
