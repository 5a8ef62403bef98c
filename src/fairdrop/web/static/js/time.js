/** Moments and lengths of time in words. */

/**
 * A moment as the clocks of a zone show it, the zone's name included.
 *
 * @param {number} ms
 * @param {string} [zone]  IANA name; the visitor's own when left out.
 */
export function formatMoment(ms, zone) {
  /** @type {Intl.DateTimeFormatOptions} */
  const style = {
    weekday: "short",
    day: "numeric",
    month: "long",
    year: "numeric",
    hour: "numeric",
    minute: "2-digit",
    timeZoneName: "short",
  };
  return new Intl.DateTimeFormat([...navigator.languages], {
    ...style,
    timeZone: zone ?? visitorZone(),
  }).format(ms);
}

/** The visitor's IANA zone. */
export function visitorZone() {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/**
 * Whether two zones' clocks show the same at a moment, whatever the zones are called.
 *
 * @param {number} ms
 * @param {string} one
 * @param {string} other
 */
export function sameClock(ms, one, other) {
  /** @param {string} zone */
  const wall = (zone) =>
    new Intl.DateTimeFormat("en", { timeZone: zone, dateStyle: "short", timeStyle: "short" }).format(ms);
  return wall(one) === wall(other);
}

/** A length of time as digits: 4:05, 1:02:09; days where there are two or more. @param {number} ms */
export function formatLength(ms) {
  const s = Math.max(0, Math.ceil(ms / 1_000));
  if (s >= 172_800) return count(Math.floor(s / 86_400), "day");
  const hours = Math.floor(s / 3_600);
  const minutes = Math.floor((s % 3_600) / 60);
  /** @param {number} n */
  const two = (n) => String(n).padStart(2, "0");
  if (hours > 0) return `${hours}:${two(minutes)}:${two(s % 60)}`;
  return `${minutes}:${two(s % 60)}`;
}

/** A length of time to be read aloud: "4 minutes", "30 seconds". @param {number} ms */
export function spokenLength(ms) {
  const s = Math.max(0, Math.round(ms / 1_000));
  if (s < 60) return count(s, "second");
  if (s < 3_600) return count(Math.round(s / 60), "minute");
  if (s < 172_800) return count(Math.round(s / 3_600), "hour");
  return count(Math.round(s / 86_400), "day");
}

/**
 * A range of waiting, no more exact than it is: "about 3 to 5 minutes", "less than a minute".
 *
 * @param {[number, number]} range  Seconds.
 */
export function waitWords([low, high]) {
  if (high < 10) return "a few seconds";
  if (high < 60) return "less than a minute";
  const unit = high < 5_400 ? "minute" : "hour";
  const size = unit === "minute" ? 60 : 3_600;
  const from = Math.floor(low / size);
  const to = Math.ceil(high / size);
  if (from < 1) return `up to ${count(to, unit)}`;
  return from === to ? `about ${count(to, unit)}` : `about ${from} to ${count(to, unit)}`;
}

/** "1 minute", "2 minutes", "1,200 people" (`many` where an s is not enough). @param {number} n
 * @param {string} one @param {string} [many] */
export function count(n, one, many = `${one}s`) {
  return `${formatCount(n)} ${n === 1 ? one : many}`;
}

/** A whole number with the separators of the visitor's language. @param {number} n */
export function formatCount(n) {
  return new Intl.NumberFormat([...navigator.languages]).format(n);
}
