/** A question before something that cannot be taken back. */

import { el } from "./dom.js";

/**
 * Asks in a modal dialog; Escape and the safe answer, which has the focus, say no.
 *
 * @param {{title: string, text: string, yes: string, no: string}} question
 * @returns {Promise<boolean>}
 */
export function confirmed({ title, text, yes, no }) {
  const dialog = el(
    "dialog",
    { "aria-labelledby": "question", "aria-describedby": "question-text" },
    el("h2", { id: "question" }, title),
    el("p", { id: "question-text" }, text),
    el(
      "form",
      { method: "dialog", className: "row" },
      el("button", { className: "button", value: "no", autofocus: true }, no),
      el("button", { className: "button button-danger", value: "yes" }, yes),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}
