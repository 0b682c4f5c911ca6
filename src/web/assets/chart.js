// Line charts with intervals, drawn at the size that they have on the page.

import { round, svg } from "/assets/dom.js";

const HEIGHT = 220;
const EDGE = { left: 46, right: 18, top: 10, bottom: 28 };

/** About `count` round numbers from `min` to `max`. */
function ticks(min, max, count) {
  const rough = (max - min) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const first = Math.ceil(min / step - 1e-9);
  const found = [];
  for (let i = first; i * step <= max + step * 1e-9; i += 1) found.push(Number((i * step).toPrecision(12)));
  return found;
}

/** 1, 2 and 5 times the powers of ten between `min` and `max`. */
function logTicks(min, max) {
  const found = [];
  for (let power = 10 ** Math.floor(Math.log10(min)); power <= max; power *= 10) {
    found.push(...[1, 2, 5].map((m) => m * power).filter((tick) => tick >= min && tick <= max));
  }
  return found;
}

/** `300,000` as `300k`. */
export function short(number) {
  if (number >= 1e6) return `${Number((number / 1e6).toPrecision(3))}M`;
  if (number >= 1e3) return `${Number((number / 1e3).toPrecision(3))}k`;
  return String(Number(number.toPrecision(3)));
}

export class Chart {
  /**
   * `series` are names of curves, for their styles; `y` says how values are written,
   * and either where they lie (`max`, `ticks`) or that they are all positive and span
   * magnitudes (`log`); `read` gets the points under the pointer.
   */
  constructor(root, { series, y, read }) {
    Object.assign(this, { root, series, y, read });
    this.curves = Object.fromEntries(series.map((name) => [name, []]));
    root.addEventListener("pointermove", (event) => this.point(event));
    root.addEventListener("pointerleave", () => this.point(null));
    new ResizeObserver(() => this.draw()).observe(root);
  }

  /** `curves`: name -> points `{ x, y, low, high }` in order; low and high are optional. */
  show(curves, xMax) {
    this.curves = curves;
    this.xMax = xMax;
    this.draw();
  }

  draw() {
    const width = this.root.clientWidth;
    if (width === 0 || this.xMax === undefined) return;
    this.root.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.x = (value) => EDGE.left + ((width - EDGE.left - EDGE.right) * value) / (this.xMax || 1);
    const yTicks = this.y.log ? this.scaleByMagnitude() : this.scaleEvenly();
    this.cursor = svg("g", { class: "cursor" });
    this.root.replaceChildren(
      this.drawAxes(width, yTicks),
      ...this.series.map((name) => this.drawCurve(name)),
      this.cursor,
    );
  }

  /** Sets `yOf` so that values from 0 to the greatest fit; returns the ticks. */
  scaleEvenly() {
    const inner = HEIGHT - EDGE.top - EDGE.bottom;
    this.yOf = (value) => HEIGHT - EDGE.bottom - (inner * value) / this.y.max;
    return this.y.ticks;
  }

  scaleByMagnitude() {
    const values = this.series.flatMap((name) => this.curves[name]).map(({ y }) => y);
    const positive = values.filter((value) => value > 0);
    const [min, max] = positive.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, 0]);
    const [low, high] = positive.length ? [min / 1.2, max * 1.2] : [0.1, 1];
    const inner = HEIGHT - EDGE.top - EDGE.bottom;
    const share = (value) => Math.log(Math.max(value, low) / low) / Math.log(high / low);
    this.yOf = (value) => HEIGHT - EDGE.bottom - inner * share(value);
    return logTicks(low, high);
  }

  drawAxes(width, yTicks) {
    const axes = svg("g", { class: "axes" });
    for (const tick of yTicks) {
      const y = round(this.yOf(tick));
      axes.append(svg("path", { d: `M${EDGE.left} ${y}H${width - EDGE.right}` }));
      axes.append(svg("text", { x: EDGE.left - 8, y: y + 4, "text-anchor": "end" }, this.y.format(tick)));
    }
    for (const tick of ticks(0, this.xMax || 1, Math.max(2, Math.floor(width / 85)))) {
      const x = round(this.x(tick));
      axes.append(svg("text", { x, y: HEIGHT - 8, "text-anchor": "middle" }, short(tick)));
    }
    return axes;
  }

  drawCurve(name) {
    const points = thin(this.curves[name]);
    const group = svg("g", { class: `series ${name}` });
    // A comparison trains one network after the other: each has a line of its own.
    for (const line of split(points)) {
      const at = (x, y) => `${round(this.x(x))} ${round(this.yOf(y))}`;
      if (line[0].low !== undefined) {
        const low = line.map(({ x, low }) => at(x, low));
        const high = line.map(({ x, high }) => at(x, high)).reverse();
        group.append(svg("path", { class: "band", d: `M${low.join("L")}L${high.join("L")}Z` }));
      }
      group.append(svg("path", { class: "line", d: `M${line.map(({ x, y }) => at(x, y)).join("L")}` }));
      if (line.length < 40 && line[0].low !== undefined) {
        for (const { x, y, low, high } of line) {
          group.append(svg("path", { class: "interval", d: `M${at(x, low)}L${at(x, high)}` }));
          group.append(svg("circle", { cx: round(this.x(x)), cy: round(this.yOf(y)), r: 3 }));
        }
      }
    }
    return group;
  }

  /** Shows what lies under the pointer. */
  point(event) {
    if (!this.x) return;
    if (event === null) {
      this.cursor.replaceChildren();
      this.read(null);
      return;
    }
    const x = event.clientX - this.root.getBoundingClientRect().left;
    const distance = (point) => Math.abs(this.x(point.x) - x);
    const nearest = (points) =>
      points.reduce((best, point) => (best && distance(best) <= distance(point) ? best : point), null);
    const found = Object.fromEntries(this.series.map((name) => [name, nearest(this.curves[name])]));
    const some = Object.values(found).find(Boolean);
    if (!some) return;
    const place = round(this.x(some.x));
    this.cursor.replaceChildren(svg("path", { d: `M${place} ${EDGE.top}V${HEIGHT - EDGE.bottom}` }));
    this.read(found);
  }
}

/** Keeps at most about a thousand points, which is more than there are pixels. */
function thin(points) {
  const step = Math.ceil(points.length / 1000);
  return points.filter((_, index) => index % step === 0 || index === points.length - 1);
}

/** Cuts where x goes back. */
function split(points) {
  const lines = [];
  for (const point of points) {
    const line = lines.at(-1);
    if (line && line.at(-1).x <= point.x) line.push(point);
    else lines.push([point]);
  }
  return lines;
}
