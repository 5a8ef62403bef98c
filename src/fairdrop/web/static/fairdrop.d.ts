/**
 * A sale's line in a shop's page. One ES module, no build, no dependency: see docs/client.md.
 *
 * The place is reckoned by subtraction from the public document, which is the same for everybody. The
 * server is asked for a visitor only near the front, or tells by itself where it pushes.
 */

export type State = "LOBBY" | "WAITING" | "READY" | "ADMITTED" | "MISSED" | "NOT_ENTERED" | "CLOSED";
export type Mode = "scheduled" | "lobby" | "drawing" | "open" | "paused" | "draining" | "closed";

export interface Variant {
  id: string;
  product: string;
  name: string;
  price_minor: number;
  /** `free + held + sold = total`. */
  total: number;
  held: number;
  sold: number;
  free: number;
}

/** The public document of a sale: what a place is reckoned from, and more (see the API document). */
export interface Sale {
  id: string;
  slug: string;
  name: string;
  mode: Mode;
  opens_at: string;
  closes_at: string | null;
  /** The number now served, and the last one given out. */
  served: number;
  tail: number;
  waiting: number;
  rate_per_s: number;
  measured_rate_per_s: number;
  outflow_per_s: number | null;
  server_time_ms: number;
  /** Places of another epoch do not count. */
  epoch: number;
  push_url: string | null;
  variants: Variant[];
}

/** A visitor's status. */
export interface Place {
  state: State;
  position: number;
  /** People ahead, exact when it was told. */
  rank: number;
  epoch: number;
  /** Until when a call can be claimed, by the server's clock. */
  claim_by_ms?: number;
  /** The admission token, a JWT: what the checkout asks for. */
  token?: string;
  token_expires_ms?: number;
  /** Proves the place after a lost line; kept by this module. */
  receipt?: string;
}

/** An answer is a value, also when it says no. No connection is status 0. */
export interface Answer {
  ok: boolean;
  /** It promises nothing either way: the same request may be sent again. */
  busy: boolean;
  status: number;
  body: any;
  /** An RFC 9457 problem document; empty when `ok`. */
  problem: { code?: string; detail?: string; title?: string; [more: string]: unknown };
  retryAfterMs: number;
}

export interface Options {
  /** Id or slug. */
  sale: string;
  /** Where Fairdrop is; this page's own origin when left out. */
  base?: string;
  /** A visitor token that your server got; without one, joining gives one. */
  token?: string;
  /** Called whenever anything is news: a figure, the place, a trouble. */
  onChange?: (line: Line) => void;
  /** Headers of a join, like that of an invitation. */
  joinHeaders?: () => Record<string, string>;
  /** Shows a CAPTCHA that is asked for; see `RequestOptions`. */
  captcha?: (problem: Answer["problem"]) => Promise<string>;
}

export interface RequestOptions {
  body?: unknown;
  /** The Idempotency-Key of a change. */
  key?: string;
  headers?: Record<string, string>;
  /**
   * Shows the widget of `problem.provider` for `problem.site_key`, and gives its token. Asked again
   * when the token was refused (`problem.reason` is `failed`); rejects when the visitor gives up.
   */
  captcha?: (problem: Answer["problem"]) => Promise<string>;
}

/** One visitor in one sale's line. */
export interface Line {
  readonly sale: Sale | null;
  readonly place: Place | null;
  readonly state: State;
  /** People ahead now, and when the place was taken. */
  readonly ahead: number | null;
  readonly first: number;
  /** The wait in seconds, from and to; null when nothing moves. */
  readonly wait: [number, number] | null;
  /** The last answer that was no success, until the next one that is. */
  readonly trouble: Answer | null;
  /** Whether a stream tells of changes at the moment; otherwise the server is asked. */
  readonly pushed: boolean;
  start(): Line;
  stop(): void;
  /** These three are repeated until the server has said yes or no. */
  join(): Promise<Answer>;
  claim(): Promise<Answer>;
  leave(): Promise<Answer>;
  /** A request about this sale as this visitor, sent once: `request("POST", "/reservations", …)`. */
  request(method: string, rest: string, options?: RequestOptions): Promise<Answer>;
  /** Asks now; `anyway`: also for what is pushed. */
  refresh(anyway?: boolean): Promise<void>;
}

/** Begins with `start()`. */
export function watchLine(options: Options): Line;

/** Nearer than this many the exact personal status is worth a request. */
export const NEAR: number;
/** People ahead, by subtraction, never more than the last exact count. */
export function peopleAhead(place: Place, sale: Sale): number;
/** Whether to ask for the personal status now; `pushed`: a stream would tell of a call. */
export function asksPersonally(place: Place, sale: Sale, nowMs: number, pushed?: boolean): boolean;
/** 1 s below 100 ahead, 3 s below 1,000, else 5 s, each ±20 %; four times as long in hidden tabs. */
export function pollDelayMs(ahead: number, chance: number, hidden: boolean): number;
/** When to try again after so many failures: 1, 2, 4, 8, 16 s, each ±50 %, and never before the server said. */
export function backOffMs(times: number, chance: number, retryAfterMs?: number): number;
/** The wait in seconds, from and to, as the server reckons it. */
export function waitRange(ahead: number, sale: Sale): [number, number] | null;
/** Sends one request, and again with the proof of work or CAPTCHA that is asked for. Never throws. */
export function request(method: string, url: string | URL, options?: RequestOptions): Promise<Answer>;
/** Takes the time an answer carried into account; NaN says nothing. */
export function observe(serverTimeMs: number): void;
/** The server's time in ms since the Unix epoch; the device's until an answer came. */
export function serverNow(): number;
