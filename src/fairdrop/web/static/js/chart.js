/** A small line chart of one figure over the last minutes, drawn as SVG. */

import { el, setText } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 240;
const HEIGHT = 56;
const POINTS = 120;
const FEWEST = 30;
/** What shows as 0 is drawn as 0, also while nothing larger has been seen. */
const LEAST_SCALE = 1;

/**
 * @param {string} tag
 * @param {Record<string, string|number>} attributes
 * @param {...Node} children
 */
function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

export class Chart {
  /**
   * @param {string} title
   * @param {(value: number) => string} format
   */
  constructor(title, format) {
    this.format = format;
    /** @type {number[]} */
    this.values = [];
    this.area = svg("path", { class: "chart-area" });
    this.line = svg("polyline", { class: "chart-line" });
    // A line of no length with round ends stays round however the picture is stretched.
    this.dot = svg("line", { class: "chart-dot" });
    this.figure = el("span", { className: "chart-figure" });
    this.range = el("span", { className: "hint" });
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true", class: "chart-picture" },
      svg("line", { class: "chart-base", x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }),
      this.area,
      this.line,
      this.dot,
    );
    this.element = el(
      "figure",
      { className: "chart" },
      el("figcaption", {}, el("span", {}, title), this.figure),
      /** @type {any} */ (picture),
      this.range,
    );
  }

  /** @param {number} value  The newest. */
  add(value) {
    this.values = [...this.values, value].slice(-POINTS);
    const highest = Math.max(...this.values, LEAST_SCALE);
    const step = WIDTH / (Math.max(this.values.length, FEWEST) - 1);
    const start = WIDTH - step * (this.values.length - 1);
    const points = this.values.map((v, i) => [
      start + i * step,
      HEIGHT - 3 - (v / highest) * (HEIGHT - 8),
    ]);
    const text = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`);
    this.line.setAttribute("points", text.join(" "));
    this.area.setAttribute("d", `M${start.toFixed(1)},${HEIGHT} L${text.join(" L")} L${WIDTH},${HEIGHT} Z`);
    const [x, y] = points[points.length - 1];
    for (const end of ["1", "2"]) {
      this.dot.setAttribute(`x${end}`, String(x - 1));
      this.dot.setAttribute(`y${end}`, String(y));
    }
    setText(this.figure, this.format(value));
    setText(this.range, `highest ${this.format(Math.max(...this.values))} in the last ${Math.max(1, Math.round(this.values.length / 60))} min`);
  }

  clear() {
    this.values = [];
  }
}
