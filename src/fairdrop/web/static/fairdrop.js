// A sale's line in a page: docs/client.md, fairdrop.d.ts.
// On the server's own origin a cookie says who is asking; elsewhere a token that this browser keeps.

export const NEAR = 100;
const BUSY = new Set([0, 429, 503, 504]);
// A stream that says nothing for so long is gone.
const SILENT_MS = 12_000;
let aheadMs = -Infinity;

// Each answer gives a lower bound, so the highest is the best.
export function observe(serverTimeMs) {
  if (!Number.isNaN(serverTimeMs)) aheadMs = Math.max(aheadMs, serverTimeMs - performance.now());
}

export function serverNow() {
  return aheadMs === -Infinity ? Date.now() : performance.now() + aheadMs;
}

// Who is ahead of the line has only the exact count.
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

export function backOffMs(times, chance, retryAfterMs = 0) {
  return retryAfterMs + Math.min(16_000, 1_000 * 2 ** times) * (0.5 + chance);
}

const prove = async ({ challenge }) =>
  (await import(new URL("js/proof.js", import.meta.url).href)).solve(challenge);

export async function request(method, url, { captcha, ...options } = {}) {
  const checks = { proof_required: ["Proof", prove], captcha_required: ["Captcha", captcha] };
  const headers = { ...options.headers };
  for (let tries = 0; ; tries += 1) {
    const got = await send(method, url, { ...options, headers });
    const [name, solve] = checks[got.problem.code] ?? [];
    if (!solve || tries > 4) return got;
    try {
      headers[`Fairdrop-${name}`] = await solve(got.problem);
    } catch {
      return got;
    }
  }
}

async function send(method, url, { body, key, headers }) {
  const sent = new Headers({ Accept: "application/json", ...headers });
  if (body) sent.set("Content-Type", "application/json");
  if (key) sent.set("Idempotency-Key", key);
  let status = 0, read = null, retryAfterS = 0;
  try {
    const response = await fetch(url, {
      method, headers: sent, body: body && JSON.stringify(body),
      cache: "no-cache", credentials: "same-origin", signal: AbortSignal.timeout(10_000),
    });
    const told = response.headers;
    if (/\bjson\b/.test(told.get("Content-Type"))) read = await response.json();
    observe(Date.parse(told.get("Date")));
    observe(read?.server_time_ms ?? NaN);
    retryAfterS = Math.min(told.get("Retry-After"), 60) || 0;
    status = response.status;
  } catch {
    // No connection, or half an answer.
  }
  const ok = status >= 200 && status < 300;
  const problem = ok ? {} : (read ?? {});
  const busy = BUSY.has(status) || (status === 502 && !problem.code);
  return { ok, busy, status, body: read, problem, retryAfterMs: retryAfterS * 1_000 };
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function watchLine({ sale: name, base, onChange = () => {}, joinHeaders = () => ({}), captcha, token: given }) {
  const root = new URL(base ?? location.origin, location.href);
  const own = root.origin === location.origin;
  const shelf = `fairdrop.line.${own ? "" : root.origin}${name}`;
  let sale = null, place = null, trouble = null, stream = null;
  let first = 0, changes = 0, failures = 0, troubles = 0, heardAt = 0, connectAt = 0;
  let kept = {}, running = false, busy = false, woken = false, fresh = true, timer, ears;

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
      for (const type of ["visibilitychange", "resume", "online", "pageshow"]) {
        addEventListener(type, wake, { signal, capture: true });
      }
      addEventListener("storage", ({ key }) => {
        if (key !== shelf) return;
        // Another tab did something.
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
    return request(method, url, { captcha, ...options, headers });
  }

  // Steps never overlap.
  async function refresh(anyway = false) {
    if (busy) woken ||= anyway;
    if (busy || !running) return;
    busy = true;
    woken = false;
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
    if (!trouble) troubles = 0;
    const rest = trouble ? backOffMs(troubles++, Math.random(), trouble.retryAfterMs) : pollDelayMs(distance(), Math.random(), document.hidden);
    again(woken ? 0 : rest, woken);
  }

  function moved() {
    return kept.epoch !== undefined && kept.epoch !== sale?.epoch;
  }

  async function personally() {
    if (moved()) {
      // Lost or begun anew: only a receipt proves a place from before.
      place = null;
      if (kept.receipt) return restore();
      forget();
    }
    const known = fresh && (place || kept.epoch !== undefined || kept.token);
    if (!known && !(place && asksPersonally(place, sale, serverNow(), line.pushed))) return;
    const before = changes;
    const got = await ask("GET", "/me");
    // An answer from before a change says nothing about after.
    if (before === changes) answered(got);
  }

  async function restore() {
    // Everybody is back at one moment.
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

  async function act(method, rest, options) {
    let got, tries = 0;
    while ((got = await ask(method, rest, options)).busy) {
      trouble = got;
      onChange(line);
      await pause(backOffMs(tries++, Math.random(), got.retryAfterMs));
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
    const soon = sale.mode === "scheduled" && Date.parse(sale.opens_at) - serverNow() < 15_000;
    if (soon || state === "READY" || state === "ADMITTED") return 0;
    return sale.mode === "open" || sale.mode === "lobby" ? NEAR : 1_000;
  }

  async function connect() {
    if (stream && !line.pushed) hangUp();
    if (stream || !sale?.push_url || document.hidden || Date.now() < connectAt) return;
    const socket = failures % 2 === 0;
    connectAt = Date.now() + backOffMs(failures++, Math.random());
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
    } else if (data.epoch === sale?.epoch && !moved() && (place || data.state !== "NOT_ENTERED")) {
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

  function again(ms, anyway) {
    clearTimeout(timer);
    timer = setTimeout(refresh, ms, anyway);
  }

  // The same in every tab: two that join at one moment are one visitor.
  function joinKey() {
    load();
    keep({ joinKey: crypto.getRandomValues(new Uint32Array(5)).join("-"), ...kept });
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
      // Refused by the browser.
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
