/**
 * What this browser remembers, so that a reload or a double click changes nothing.
 *
 * Session storage (this tab only): the admission token, idempotency keys, the operator's API key.
 * Local storage: that there is a place in a sale, and the last order, neither of them a secret. Who
 * the visitor is stands in an HttpOnly cookie that no script can read. Where storage is refused, a
 * map of this page takes over: the site works on, only without memory of a reload.
 */

class Shelf {
  /** @param {"sessionStorage"|"localStorage"} kind */
  constructor(kind) {
    /** @type {Map<string, string>} */
    this.fallback = new Map();
    /** @type {Storage|null} */
    this.storage = null;
    try {
      this.storage = window[kind];
    } catch {
      // Refused by the browser's settings.
    }
  }

  /** @param {string} name @returns {any} */
  get(name) {
    const key = `fairdrop.${name}`;
    const text = this.storage?.getItem(key) ?? this.fallback.get(key) ?? null;
    try {
      return text === null ? null : JSON.parse(text);
    } catch {
      return null;
    }
  }

  /** @param {string} name @param {unknown} value */
  set(name, value) {
    const key = `fairdrop.${name}`;
    const text = JSON.stringify(value);
    try {
      if (!this.storage) throw new Error("no storage");
      this.storage.setItem(key, text);
    } catch {
      this.fallback.set(key, text);
    }
  }

  /** @param {string} name */
  remove(name) {
    this.storage?.removeItem(`fairdrop.${name}`);
    this.fallback.delete(`fairdrop.${name}`);
  }
}

export const session = new Shelf("sessionStorage");
export const local = new Shelf("localStorage");

/**
 * The key under which an operation is sent: the same for the same request until it has its answer,
 * another as soon as the person asks for something else.
 *
 * @param {string} operation  What is done to what, e.g. `reserve.<sale>`.
 * @param {unknown} [body]  The request's body.
 */
export function keyFor(operation, body = null) {
  const print = JSON.stringify(body);
  const kept = session.get(`key.${operation}`);
  if (kept?.print === print) return kept.key;
  const key = randomKey();
  session.set(`key.${operation}`, { key, print });
  return key;
}

/**
 * Ends an operation: the next request is a new one. Called once the answer is in hand, a refusal
 * too, since repeating the key would repeat the refusal.
 *
 * @param {string} operation
 */
export function settleKey(operation) {
  session.remove(`key.${operation}`);
}

/** 32 hex digits of chance. `crypto.randomUUID` is missing on plain http in a local network. */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
