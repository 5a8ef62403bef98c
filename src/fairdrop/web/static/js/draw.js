/** The page on which anybody checks a draw, in their own browser, from the public files alone (W4). */

import { call, salePath } from "./api.js";
import { announce, byId, busyWhile, el, setText, showNotice } from "./dom.js";
import { local } from "./memory.js";
import { count, formatCount } from "./time.js";
import { verify, verifyEntry } from "./verify.js";
import { explain } from "./words.js";

/** @typedef {import("./verify.js").Verdict} Verdict */

const slug = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const base = `${salePath(slug)}/draw`;
const note = byId("note");
const result = byId("result");
const check = /** @type {HTMLButtonElement} */ (byId("check"));
const checkEntry = /** @type {HTMLButtonElement} */ (byId("check-entry"));
const field = /** @type {HTMLTextAreaElement} */ (byId("receipt"));
const bar = /** @type {HTMLProgressElement} */ (byId("progress"));
const signing = /** @type {HTMLButtonElement} */ (byId("sign"));
/** @type {any} */
let parameters = null;

const STATES = {
  committed: "The order is not drawn yet. The shop is bound to a secret by the commitment below: keep a copy of it.",
  fixed: "The lobby is shut and the list is public. The order is being drawn.",
  drawn: "The order is drawn. It can be checked now.",
  filled: "The order is drawn. It can be checked now.",
};

async function start() {
  const got = await call("GET", base);
  byId("draw").removeAttribute("aria-busy");
  if (!got.ok) {
    setText(byId("name"), got.status === 404 ? "There is no draw at this address" : "The draw cannot be read now");
    showNotice(note, got.status === 404 ? "" : explain(got));
    return;
  }
  parameters = got.body;
  setText(byId("name"), `The draw of ${parameters.sale.name}`);
  setText(byId("state"), STATES[/** @type {keyof typeof STATES} */ (parameters.state)] ?? "");
  byId("facts").replaceChildren(...facts(parameters));
  byId("files").replaceChildren(...["draw.json", ...parameters.files].map((name) => el("li", {}, el("a", { href: `${base}/${name}` }, name))));
  byId("checking").hidden = parameters.seed === null;
  const kept = local.get(`entry.${parameters.sale.id}`);
  if (kept?.receipt) {
    field.value = kept.receipt;
    signing.hidden = false;
  }
}

/** @param {any} draw */
function facts(draw) {
  const rows = [
    ["Commitment", draw.commitment],
    ["People in the list", draw.entries === null ? null : formatCount(draw.entries)],
    ["Root of the list", draw.root],
    ["Public beacon", draw.beacon.source === "none" ? "none" : `${draw.beacon.source}: ${draw.beacon.value ?? "not known yet"}`],
    ["Seed", draw.seed],
  ];
  return rows.filter(([, value]) => value !== null).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", { className: "hash" }, value)));
}

/** @param {string} name */
async function fetched(name) {
  const response = await fetch(`${base}/${name}`);
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(`${name} answered ${response.status}`);
  return response.text();
}

/** @param {(receipt: string|null) => Promise<Verdict>} judge */
async function checkNow(judge) {
  showNotice(note);
  if (!crypto.subtle) {
    showNotice(note, "This page can only check over a secure connection (https). `fairdrop verify-draw` checks anywhere.");
    return;
  }
  bar.hidden = false;
  result.replaceChildren();
  try {
    const verdict = await judge(field.value.trim() || null);
    result.replaceChildren(...shown(verdict));
    result.dataset.right = `${verdict.findings.length === 0}`;
    announce(result.textContent ?? "");
  } catch (error) {
    showNotice(note, `The files could not be read: ${/** @type {Error} */ (error).message}. Please try again.`);
  }
  bar.hidden = true;
}

/** @param {string|null} receipt */
async function all(receipt) {
  const [own, entries, order] = await Promise.all([fetched("draw.json"), fetched("entries.txt"), fetched("order.txt")]);
  const files = { parameters: own ?? "", entries: entries ?? "", order };
  return verify(files, receipt, (share) => (bar.value = share));
}

/** By a few hashes, however long the list is. @param {string|null} receipt */
async function mine(receipt) {
  return verifyEntry((await fetched("draw.json")) ?? "", receipt ?? "", (entry) => fetched(`entries/${entry}`));
}

/** @param {Verdict} verdict */
function shown(verdict) {
  const found = verdict.findings.map(({ fault, message }) =>
    el("p", { className: "notice notice-error" }, el("strong", {}, `${fault}: `), message));
  if (found.length === 0 && verdict.number !== null && verdict.place === null) {
    found.push(el("p", { className: "notice" }, `Your entry is in the list of ${formatCount(verdict.entries)} that was drawn from: your browser has followed the way from it to the root.`),
      el("p", { className: "hash" }, `Your entry ${verdict.entry} has the number ${verdict.number}.`));
  } else if (found.length === 0) {
    found.push(el("p", { className: "notice" }, `The draw is right. Commitment, list, root, numbers and order of ${count(verdict.entries, "entry", "entries")} agree; your browser has computed them all again.`));
  }
  if (verdict.place !== null) {
    found.push(el("p", { className: "big-number" }, formatCount(verdict.place)), el("p", { className: "big-label" }, "is your place"),
      el("p", { className: "hash" }, `Your entry ${verdict.entry} has the number ${verdict.number}.`));
  }
  return [...found, ...verdict.notes.map((text) => el("p", { className: "hint" }, text))];
}

async function sign() {
  const got = await call("POST", salePath(slug, "/receipt"), { body: { receipt: field.value.trim() } });
  if (!got.ok) {
    showNotice(note, explain(got));
    return;
  }
  const blob = new Blob([JSON.stringify(got.body, null, 2)], { type: "application/json" });
  const link = el("a", { href: URL.createObjectURL(blob), download: `receipt-${slug}.json` });
  link.click();
  URL.revokeObjectURL(link.href);
}

check.addEventListener("click", () => busyWhile(check, "Checking…", () => checkNow(all)));
checkEntry.addEventListener("click", () => busyWhile(checkEntry, "Checking…", () => checkNow(mine)));
signing.addEventListener("click", () => busyWhile(signing, "Signing…", sign));
start();
