/** Building and changing the page without ever turning text into markup. */

/**
 * An element with properties and children. Names that are no property of it become attributes;
 * `onclick` and its like become listeners.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node|string|null|false|undefined)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element) /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value);
  }
  for (const child of children) {
    if (child || child === "") element.append(child);
  }
  return element;
}

/**
 * The element of an id that the skeleton has. @param {string} id @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no #${id}`);
  return element;
}

/**
 * Sets a text only when it differs: a screen reader is told of every change, also of none.
 *
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Shows a message in one of the page's notices, or hides the notice. One that has no role of its
 * own is announced, since a region that appears with its text is often passed over.
 *
 * @param {HTMLElement} notice
 * @param {string} [text]
 */
export function showNotice(notice, text = "") {
  if (text && notice.textContent !== text && !notice.hasAttribute("role")) announce(text);
  setText(notice, text);
  notice.hidden = text === "";
}

/** Says something to people who cannot see it change, when they have a moment. @param {string} text */
export function announce(text) {
  setText(byId("announcer"), text);
}

/** Says something at once, whatever is being read. For "it is your turn", little else. @param {string} text */
export function alarm(text) {
  setText(byId("alarm"), text);
}

/**
 * Puts other content into a region. Whoever had the focus inside is taken to its new heading rather
 * than to the top of the page.
 *
 * @param {HTMLElement} region
 * @param {Node} content
 */
export function replaceContent(region, content) {
  const hadFocus = region.contains(document.activeElement);
  region.replaceChildren(content);
  if (hadFocus) focusHeading(region);
}

/** @param {HTMLElement} region */
export function focusHeading(region) {
  const heading = /** @type {HTMLElement|null} */ (region.querySelector("h1, h2"));
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus();
}

/**
 * Runs what a button starts, once at a time: a second click while it runs does nothing.
 *
 * @param {HTMLButtonElement} button
 * @param {string} busyLabel
 * @param {() => Promise<void>} work
 */
export async function busyWhile(button, busyLabel, work) {
  if (button.getAttribute("aria-disabled") === "true") return;
  const label = button.textContent ?? "";
  // aria-disabled rather than disabled: the button keeps the focus.
  button.setAttribute("aria-disabled", "true");
  button.textContent = busyLabel;
  try {
    await work();
  } finally {
    button.removeAttribute("aria-disabled");
    button.textContent = label;
  }
}
