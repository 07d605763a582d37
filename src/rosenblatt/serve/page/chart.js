// The share of wrong predictions over the examples seen, as a drawing: one line for each window, one since the start.

import { compact, count, counted, percent, shape, share, time } from "./elements.js";

const MARGIN = { left: 46, right: 12, top: 26, bottom: 42 };
const HEIGHT = 260;

/**
 * Return at most `most` windows, each of equally many neighbours as one, so that a line through them can be read. What is left
 * at the end belongs to the one before, unless it is at least half as long: few examples say little.
 */
export function coarsen(windows, most) {
  const together = Math.ceil(windows.length / most);
  const merged = [];
  windows.forEach((window, index) => {
    if (index % together) merged[merged.length - 1] = merge(merged.at(-1), window);
    else merged.push(window);
  });
  if (merged.length > 1 && 2 * merged.at(-1).seen < merged.at(-2).seen) {
    const rest = merged.pop();
    merged.push(merge(merged.pop(), rest));
  }
  return merged;
}

function merge(one, other) {
  const labels = new Map(Object.entries(one.labels ?? {}));
  for (const [label, counts] of Object.entries(other.labels ?? {})) {
    const before = labels.get(label) ?? { seen: 0, wrong: 0 };
    labels.set(label, { seen: before.seen + counts.seen, wrong: before.wrong + counts.wrong });
  }
  const sums = { seen: one.seen + other.seen, wrong: one.wrong + other.wrong };
  return { ...other, ...sums, from_seq: one.from_seq, labels: Object.fromEntries(labels) };
}

/**
 * Return points with running sums, one for each window: `seen` and `wrong` since the start, `windowSeen` and `windowWrong` in
 * the window alone.
 */
export function pointsOf(windows) {
  let seen = 0;
  let wrong = 0;
  return windows.map((window) => {
    seen += window.seen;
    wrong += window.wrong;
    return { fromSeq: window.from_seq, seq: window.seq, time: window.time, seen, wrong, windowSeen: window.seen, windowWrong: window.wrong };
  });
}

/**
 * Return {point, seen} of the state after a log entry: the window that it ends in, and about how many examples it had seen; null
 * where there is none, because the model was set back to an earlier state.
 */
export function placeOf(seq, points) {
  const next = points.findIndex((point) => point.seq > seq);
  const point = points.at(next < 0 ? points.length - 1 : next);
  const before = next < 0 ? points.at(-1) : points[next - 1];
  if (before?.seq === seq) return { point: before, seen: before.seen, exact: true };
  if (next < 0) return null;
  const part = Math.max(0, seq - point.fromSeq + 1) / (point.seq - point.fromSeq + 1);
  return { point, seen: point.seen - point.windowSeen + Math.round(part * point.windowSeen), exact: false };
}

/** Say the state after a log entry in words. */
export function describeState(seq, place) {
  if (place === null) return `The state after log entry ${count(seq)}, which is not a part of what the model is now.`;
  if (place.exact) return describePoint(place.point);
  return `After about ${counted(place.seen, "example")} (log entry ${count(seq)}): ${describeWindow(place.point)}.`;
}

const describeWindow = (point) =>
  `${share(point.windowWrong, point.windowSeen)} wrong in this window (${count(point.windowWrong)} of ${count(point.windowSeen)})`;

export const windowShare = (point) => (point.windowSeen ? point.windowWrong / point.windowSeen : 0);
export const overallShare = (point) => (point.seen ? point.wrong / point.seen : 0);

/** Say a point in words. */
export function describePoint(point) {
  const start = `${share(point.wrong, point.seen)} since the start`;
  return `After ${counted(point.seen, "example")} (log entry ${count(point.seq)}, ${time(point.time)}): ${describeWindow(point)}, ${start}.`;
}

function describeAll(points) {
  if (!points.length) return "No examples yet";
  const last = points.at(-1);
  const shares = points.filter((point) => point.windowSeen).map(windowShare);
  const range = shares.length > 1 ? ` Windows range from ${percent(Math.min(...shares))} to ${percent(Math.max(...shares))}.` : "";
  return `Chart of wrong predictions over ${counted(last.seen, "example")}. ${describePoint(last)}${range}`;
}

/** Return steps of 1, 2 or 5 times a power of ten from 0 to `most`, at most `parts` of them. */
function ticks(most, parts) {
  const rough = most / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const steps = [];
  for (let at = 0; at <= most * 1.000001; at += step) steps.push(at);
  return steps;
}

const path = (places) => places.map(([x, y], index) => `${index ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

/**
 * The chart in an svg element, as wide as there is room. `hover(point or null)` is called as the pointer moves over it,
 * `pick(point)` when a place is clicked; `mark(seen)` draws the state that was chosen.
 */
export class ErrorChart {
  #points = [];
  #marked = null;
  #hovered = null;
  #width = 0;

  constructor(svg, { hover, pick }) {
    this.svg = svg;
    this.hover = hover;
    new ResizeObserver(([entry]) => {
      const width = Math.round(entry.contentRect.width);
      if (width === this.#width) return;
      this.#width = width;
      this.#draw();
    }).observe(svg.parentElement);
    svg.addEventListener("pointermove", (event) => this.#point(event));
    svg.addEventListener("pointerleave", () => this.#setHovered(null));
    svg.addEventListener("click", (event) => {
      const point = this.#nearest(event);
      if (point) pick(point);
    });
  }

  show(points) {
    this.#points = points;
    if (this.#hovered) this.#hovered = points.find((point) => point.seen >= this.#hovered.seen) ?? null;
    this.#draw();
  }

  /** Draw a line after so many examples; null draws none. */
  mark(seen) {
    this.#marked = seen;
    this.#draw();
  }

  #scales() {
    const most = Math.max(...this.#points.map(windowShare), ...this.#points.map(overallShare), 0.01);
    const high = !this.#points.length ? 1 : [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1].find((limit) => limit >= most - 1e-9) ?? 1;
    const seen = this.#points.at(-1)?.seen || 1;
    const right = this.#width - MARGIN.right;
    const bottom = HEIGHT - MARGIN.bottom;
    return {
      high, seen, right, bottom,
      x: (examples) => MARGIN.left + ((right - MARGIN.left) * examples) / seen,
      y: (fraction) => bottom - ((bottom - MARGIN.top) * fraction) / high,
    };
  }

  #nearest(event) {
    if (!this.#points.length) return null;
    const at = event.clientX - this.svg.getBoundingClientRect().left;
    const { x } = this.#scales();
    let low = 0;
    let high = this.#points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (x(this.#points[middle].seen) < at) low = middle + 1;
      else high = middle;
    }
    const before = this.#points[low - 1];
    const after = this.#points[low];
    return before && at - x(before.seen) < x(after.seen) - at ? before : after;
  }

  #point(event) {
    this.#setHovered(this.#nearest(event));
  }

  #setHovered(point) {
    if (point === this.#hovered) return;
    this.#hovered = point;
    this.#draw();
    this.hover(point);
  }

  #draw() {
    const width = this.#width;
    if (!width) return;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.setAttribute("width", width);
    this.svg.setAttribute("height", HEIGHT);
    this.svg.setAttribute("aria-label", describeAll(this.#points));
    const scales = this.#scales();
    this.svg.replaceChildren(...this.#axes(scales), ...this.#lines(scales), ...this.#marks(scales));
  }

  #axes({ high, seen, right, bottom, x, y }) {
    const parts = [
      shape("text", { class: "title", x: 0, y: 12 }, "wrong predictions"),
      shape("text", { class: "title", x: right, y: HEIGHT - 4, "text-anchor": "end" }, "examples seen"),
    ];
    for (const at of ticks(high, 4)) {
      parts.push(
        shape("line", { class: at ? "grid" : "axis", x1: MARGIN.left, x2: right, y1: y(at), y2: y(at) }),
        shape("text", { x: MARGIN.left - 8, y: y(at) + 4, "text-anchor": "end" }, `${Number((100 * at).toPrecision(3))} %`));
    }
    const steps = this.#points.length ? ticks(seen, Math.max(2, Math.floor(width(right) / 90))) : [];
    for (const at of steps.filter((step) => Number.isInteger(step))) {
      const anchor = x(at) > right - 16 ? "end" : at === 0 ? "start" : "middle";
      parts.push(
        shape("line", { class: "axis", x1: x(at), x2: x(at), y1: bottom, y2: bottom + 4 }),
        shape("text", { x: x(at), y: bottom + 18, "text-anchor": anchor }, compact(at)));
    }
    return parts;
  }

  #lines({ x, y }) {
    const points = this.#points;
    if (!points.length) return [];
    const overall = points.map((point) => [x(point.seen), y(overallShare(point))]);
    const windows = points.filter((point) => point.windowSeen).map((point) => [x(point.seen), y(windowShare(point))]);
    const lines = [
      shape("path", { class: "line overall", d: path(overall) }),
      shape("path", { class: "line window", d: path(windows) }),
    ];
    if (points.length <= 40) lines.push(...windows.map(([cx, cy]) => shape("circle", { class: "dot", cx, cy, r: 2.5 })));
    return lines;
  }

  #marks({ x, y, bottom }) {
    const marks = [];
    if (this.#marked !== null && this.#points.length) {
      const at = x(this.#marked);
      marks.push(
        shape("line", { class: "marked", x1: at, x2: at, y1: MARGIN.top, y2: bottom }),
        shape("circle", { class: "marked", cx: at, cy: MARGIN.top, r: 5 }));
    }
    if (this.#hovered) {
      const at = x(this.#hovered.seen);
      marks.push(
        shape("line", { class: "hovered", x1: at, x2: at, y1: MARGIN.top, y2: bottom }),
        shape("circle", { class: "hovered overall", cx: at, cy: y(overallShare(this.#hovered)), r: 4.5 }),
        shape("circle", { class: "hovered window", cx: at, cy: y(windowShare(this.#hovered)), r: 4.5 }));
    }
    return marks;
  }
}

const width = (right) => right - MARGIN.left;

/** Return a small line of the shares of one label, for a row of a table; a window without the label is passed over. */
export function drawSparkline(counts) {
  const [wide, high] = [120, 28];
  const places = counts
    .map(({ seen, wrong }, index) => [index, seen ? wrong / seen : null])
    .filter(([, fraction]) => fraction !== null)
    .map(([index, fraction]) => [2 + ((wide - 4) * index) / Math.max(1, counts.length - 1), high - 3 - (high - 6) * fraction]);
  const drawing = shape("svg", { class: "sparkline", viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, "aria-hidden": "true" });
  drawing.append(shape("line", { class: "grid", x1: 0, x2: wide, y1: high - 3, y2: high - 3 }));
  if (places.length === 1) drawing.append(shape("circle", { class: "dot", cx: places[0][0], cy: places[0][1], r: 2 }));
  else drawing.append(shape("path", { class: "line window", d: path(places) }));
  return drawing;
}
