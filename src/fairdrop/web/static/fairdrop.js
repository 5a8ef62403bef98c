// A sale's line in a page: docs/client.md, fairdrop.d.ts.
// On the server's own origin a cookie says who is asking; elsewhere a token that this browser keeps.

export const NEAR = 100;
const BUSY = new Set([0, 429, 503, 504]);
// A stream tells something every 5 s; silent for longer, it is as good as gone.
const SILENT_MS = 12_000;
let aheadMs = -Infinity;

// Each answer gives a lower bound, so the highest is the best.
export function observe(serverTimeMs) {
  if (!Number.isNaN(serverTimeMs)) aheadMs = Math.max(aheadMs, serverTimeMs - performance.now());
}

export function serverNow() {
  return aheadMs === -Infinity ? Date.now() : performance.now() + aheadMs;
}

// By subtraction, never more than the last exact count; who is ahead of the line has only that.
export function peopleAhead(place, sale) {
  if (place.position <= sale.served) return place.rank;
  return Math.max(0, Math.min(place.position - sale.served - 1, place.rank));
}

export function asksPersonally(place, sale, nowMs, pushed = false) {
  const { state, position, claim_by_ms = 0, token_expires_ms = Infinity } = place;
  if (state === "WAITING") return position <= sale.served || (!pushed && peopleAhead(place, sale) < NEAR);
  if (state === "LOBBY") return sale.mode !== "lobby" && sale.mode !== "drawing";
  // Nothing changes for these two before their deadline.
  return (state === "READY" && claim_by_ms <= nowMs) || (state === "ADMITTED" && token_expires_ms <= nowMs);
}

export function pollDelayMs(ahead, chance, hidden) {
  const base = ahead < NEAR ? 1_000 : ahead < 1_000 ? 3_000 : 5_000;
  return Math.round(base * (0.8 + 0.4 * chance) * (hidden ? 4 : 1));
}

export function waitRange(ahead, sale) {
  if (sale.mode === "paused" || sale.mode === "closed") return null;
  const rate = sale.outflow_per_s ?? sale.rate_per_s;
  if (!(rate > 0)) return null;
  const middle = (ahead + 1) / rate;
  return [Math.floor(middle * 0.8), Math.floor(middle * 1.3) + 2];
}

export async function request(method, url, options = {}) {
  const got = await send(method, url, options);
  if (got.problem.code !== "proof_required") return got;
  try {
    const { solve } = await import(new URL("js/proof.js", import.meta.url).href);
    const headers = { ...options.headers, "Fairdrop-Proof": await solve(got.problem.challenge) };
    return await send(method, url, { ...options, headers });
  } catch {
    return got;
  }
}

async function send(method, url, { body, key, headers }) {
  const sent = new Headers({ Accept: "application/json", ...headers });
  if (body) sent.set("Content-Type", "application/json");
  if (key) sent.set("Idempotency-Key", key);
  const signal = AbortSignal.timeout(10_000);
  const asked = { method, headers: sent, body: body && JSON.stringify(body), cache: "no-cache", signal };
  try {
    const response = await fetch(url, { ...asked, credentials: "same-origin" });
    const read = /\bjson\b/.test(response.headers.get("Content-Type")) ? await response.json() : null;
    observe(Date.parse(response.headers.get("Date")));
    observe(read?.server_time_ms ?? NaN);
    return answer(response.status, read, Number(response.headers.get("Retry-After")));
  } catch {
    return answer(0, null, 0);
  }
}

function answer(status, body, retryAfterS) {
  const ok = status >= 200 && status < 300;
  const problem = ok ? {} : (body ?? {});
  // Promises nothing either way: the same may be sent again.
  const busy = BUSY.has(status) || (status === 502 && !problem.code);
  return { ok, busy, status, body, problem, retryAfterMs: Math.min(retryAfterS || 0, 60) * 1_000 };
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function watchLine({ sale: name, base, onChange = () => {}, joinHeaders = () => ({}), token: given }) {
  const root = new URL(base ?? location.origin, location.href);
  const own = root.origin === location.origin;
  const shelf = `fairdrop.line.${own ? "" : root.origin}${name}`;
  let sale = null, place = null, trouble = null, stream = null;
  let first = 0, changes = 0, failures = 0, heardAt = 0, connectAt = 0;
  let kept = {}, running = false, busy = false, fresh = true, timer, ears;

  const line = {
    get sale() { return sale; },
    get place() { return place; },
    get first() { return first; },
    get trouble() { return trouble; },
    get state() { return place?.state ?? "NOT_ENTERED"; },
    get ahead() { return place && sale ? peopleAhead(place, sale) : null; },
    get wait() { return line.ahead === null ? null : waitRange(line.ahead, sale); },
    get pushed() { return stream !== null && Date.now() - heardAt < SILENT_MS; },
    join: () => act("POST", "/join", { key: joinKey(), headers: joinHeaders() }),
    claim: () => act("POST", "/claim"),
    leave: () => act("DELETE", "/me"),
    request: ask,
    refresh,
    start() {
      running = true;
      ears = new AbortController();
      const { signal } = ears;
      const wake = () => document.hidden || refresh(true);
      document.addEventListener("visibilitychange", wake, { signal });
      addEventListener("online", wake, { signal });
      addEventListener("pageshow", wake, { signal });
      addEventListener("storage", ({ key }) => {
        if (key !== shelf) return;
        // Another tab of this browser did something.
        load();
        fresh = true;
        refresh(true);
      }, { signal });
      refresh();
      return line;
    },
    stop() {
      running = false;
      ears?.abort();
      clearTimeout(timer);
      hangUp();
    },
  };
  load();
  if (given) kept.token = given;
  return line;

  function ask(method, rest, options = {}) {
    const headers = { ...(kept.token && { Authorization: `Bearer ${kept.token}` }), ...options.headers };
    const url = new URL(`/v1/sales/${encodeURIComponent(name)}${rest}`, root);
    return request(method, url, { ...options, headers });
  }

  // Steps never overlap. `anyway`: ask for the public document although it is pushed.
  async function refresh(anyway = false) {
    if (busy || !running) return;
    busy = true;
    clearTimeout(timer);
    if (anyway || !line.pushed) {
      const got = await ask("GET", "");
      trouble = got.ok ? null : got;
      if (got.ok) sale = got.body;
    }
    if (sale && !trouble) await personally();
    busy = false;
    if (!running) return;
    connect();
    onChange(line);
    again(pollDelayMs(distance(), Math.random(), document.hidden));
  }

  function moved() {
    return kept.epoch !== undefined && kept.epoch !== sale?.epoch;
  }

  async function personally() {
    if (moved()) {
      // The line was lost or begun anew: only a receipt may prove a place from before.
      place = null;
      if (kept.receipt) return restore();
      forget();
    }
    const known = fresh && (place || kept.epoch !== undefined || kept.token);
    if (!known && !(place && asksPersonally(place, sale, serverNow(), line.pushed))) return;
    const before = changes;
    const got = await ask("GET", "/me");
    // An answer from before this visitor did something says nothing about after.
    if (before === changes) answered(got);
  }

  async function restore() {
    // Everybody is back at one moment: not all in one second.
    await pause(Math.random() * 3_000);
    const body = { receipt: kept.receipt, token: kept.admission };
    const got = await ask("POST", "/restore", { body });
    if (got.ok || got.busy) return answered(got);
    forget();
    if (got.problem.code === "receipt_of_lobby") await line.join();
  }

  function answered(got) {
    if (got.ok) {
      fresh = false;
      accept(got.body);
    } else if (got.status === 401) forget(null);
    else trouble = got;
  }

  function accept(status) {
    const { state, rank, position, epoch, receipt = kept.receipt, token: admission } = status;
    if (state === "NOT_ENTERED" || state === "CLOSED") {
      forget();
      if (state === "CLOSED") place = status;
      return;
    }
    if (state === "WAITING" && place?.state !== state) first = Math.max(first, rank);
    place = status;
    const token = own ? undefined : (status.visitor_token ?? kept.token);
    keep({ position, epoch, receipt, admission, first, token });
    if (status.visitor_token) hangUp(); // Now there is a name to listen under.
  }

  // Repeated until the server has said yes or no.
  async function act(method, rest, options) {
    let got;
    for (let wait = 1_000; ; wait = Math.min(wait * 1.6, 8_000)) {
      got = await ask(method, rest, options);
      if (!got.busy) break;
      trouble = got;
      onChange(line);
      await pause(Math.max(wait, got.retryAfterMs) * (0.8 + 0.4 * Math.random()));
    }
    changes += 1;
    trouble = null;
    if (got.ok) accept(got.body);
    else fresh = true;
    onChange(line);
    refresh(true);
    return got;
  }

  function distance() {
    if (!sale) return NEAR;
    const { state } = line;
    if (state === "WAITING") return line.ahead;
    if (state === "READY" || state === "ADMITTED") return 0;
    if (sale.mode === "scheduled" && Date.parse(sale.opens_at) - serverNow() < 15_000) return 0;
    return sale.mode === "open" || sale.mode === "lobby" ? NEAR : 1_000;
  }

  async function connect() {
    if (stream && !line.pushed) hangUp();
    if (stream || !sale?.push_url || document.hidden || Date.now() < connectAt) return;
    const socket = failures % 2 === 0;
    connectAt = Date.now() + Math.min(30_000, 1_000 * 2 ** failures) * (0.5 + Math.random());
    failures += 1;
    const path = `/v1/sales/${sale.id}/${socket ? "socket" : "stream"}`;
    const url = new URL(path, new URL(sale.push_url, root));
    if (kept.token) {
      const got = await ask("POST", "/ticket");
      if (!got.ok || stream || !running) return;
      url.searchParams.set("ticket", got.body.ticket);
    }
    if (socket) url.protocol = url.protocol.replace("http", "ws");
    const opened = socket ? new WebSocket(url) : new EventSource(url, { withCredentials: own });
    const on = (type, then) => opened.addEventListener(type, (event) => opened === stream && then(event));
    on("message", ({ data }) => heard(...Object.values(JSON.parse(data))));
    for (const type of ["sale", "place", "bye"]) on(type, ({ data }) => heard(type, JSON.parse(data)));
    on("close", hangUp);
    on("error", hangUp);
    heardAt = Date.now();
    stream = opened;
  }

  function heard(type, data) {
    heardAt = Date.now();
    failures = 0;
    if (type === "bye") {
      hangUp();
      connectAt = Date.now() + data.reconnect_ms;
      return;
    }
    trouble = null;
    if (type === "sale") {
      observe(data.server_time_ms);
      sale = data;
    } else if (data.epoch === sale?.epoch && (place || data.state !== "NOT_ENTERED")) {
      accept(data);
    }
    onChange(line);
    // Everybody hears this at one moment, so nobody asks at once.
    const asks = moved() || (place && asksPersonally(place, sale, serverNow(), true));
    if (asks && !busy) again(Math.random() * 2_000);
  }

  function hangUp() {
    const closing = stream;
    stream = null;
    closing?.close();
  }

  function again(ms) {
    clearTimeout(timer);
    timer = setTimeout(refresh, ms);
  }

  // The same in every tab: two that join for the first time at one moment are one visitor.
  function joinKey() {
    load();
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    keep({ joinKey: Array.from(bytes, (byte) => (256 + byte).toString(16).slice(1)).join(""), ...kept });
    return kept.joinKey;
  }

  function forget(token = kept.token) {
    place = null;
    first = 0;
    fresh = false;
    keep({ token });
  }

  function keep(next) {
    kept = next;
    try {
      localStorage.setItem(shelf, JSON.stringify(kept));
    } catch {
      // Refused by the browser: no memory of a reload.
    }
  }

  function load() {
    try {
      kept = JSON.parse(localStorage.getItem(shelf)) ?? kept;
      first = Math.max(first, kept.first ?? 0);
    } catch {
      // Likewise.
    }
  }
}
