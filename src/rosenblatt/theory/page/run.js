"use strict";

// A step is a state of the run: step k shows the weights after k updates, and the update that made them.

const byId = (id) => document.getElementById(id);
const run = JSON.parse(byId("run").textContent);
const last = run.example.length;
const width = run.names.length;
const separable = run.gamma > 0;
const [xAxis, yAxis] = run.axes ?? [];
const MOVE = run.rate === 1 ? "y·x" : "η·y·x"; // what an update adds to w

// Numbers as text

const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const decimals = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const whole = new Intl.NumberFormat("en");

function numberText(value, format = short) {
  const size = Math.abs(value);
  const far = size >= 1e7 || (size < 1e-3 && size > 0);
  if (!far) return (Number.isInteger(value) ? whole : format).format(value).replace("-", "−");
  const [digits, power] = value.toExponential(2).split("e");
  return `${digits}·10${power.replace("+", "").replace(/./g, (digit) => SUPERSCRIPTS[digit])}`.replace("-", "−");
}
const SUPERSCRIPTS = { "-": "⁻", ...Array.from("⁰¹²³⁴⁵⁶⁷⁸⁹") };
const count = (value, noun) => `${whole.format(value)} ${noun}${value === 1 ? "" : "s"}`;

/** The label and the y of a class, once if they are the same number. */
function className(sign) {
  const label = run.classes[run.classes.length > 1 && sign > 0 ? 1 : 0];
  const y = sign > 0 ? "y = +1" : "y = −1";
  return Number(label) === sign ? y : `${label}, ${y}`;
}

// The weights of a step: the run again, from the nearest state that was kept. All are kept unless that takes over 32 MB.

const stride = Math.ceil(((last + 1) * width) / 4e6);
const kept = [Float64Array.from(run.start)];

function learn(w, k) {
  const [columns, values] = run.moves[run.example[k]];
  for (let j = 0; j < columns.length; j++) w[columns[j]] += run.rate * values[j];
}

function weightsAt(k) {
  for (let block = kept.length; block * stride <= k; block++) {
    const w = kept[block - 1].slice();
    for (let i = (block - 1) * stride; i < block * stride; i++) learn(w, i);
    kept.push(w);
  }
  const block = Math.floor(k / stride);
  const w = stride === 1 ? kept[block] : kept[block].slice();
  for (let i = block * stride; i < k; i++) learn(w, i);
  return w;
}

const lowerWall = (k) => run.lower[0] + k * run.lower[1];
const upperWall = (k) => Math.sqrt(run.upper[0] + k * run.upper[1]);

// Canvases: each keeps what does not change from step to step as a picture of its own

const colours = {};
let em = 16;

class Drawing {
  constructor(id) {
    this.canvas = byId(id);
    this.context = this.canvas.getContext("2d");
    this.still = document.createElement("canvas");
    this.curves = document.createElement("canvas"); // pale where the run has not come yet
  }

  resize() {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    for (const canvas of [this.canvas, this.still, this.curves]) {
      canvas.width = Math.round(this.width * scale);
      canvas.height = Math.round(this.height * scale);
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.font = `${0.8 * em}px system-ui, sans-serif`;
      context.lineCap = "round";
      context.lineJoin = "round";
    }
  }

  clear() {
    this.context.clearRect(0, 0, this.width, this.height);
  }

  /** Draw the left part of one of the pictures that stay. */
  paste(picture, alpha = 1, part = 1) {
    const wide = Math.round(picture.width * part);
    if (wide < 1) return;
    this.context.globalAlpha = alpha;
    this.context.drawImage(picture, 0, 0, wide, picture.height, 0, 0, (this.width * wide) / picture.width, this.height);
    this.context.globalAlpha = 1;
  }
}

function stroke(context, points, colour, thickness, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  context.setLineDash(dash);
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  context.stroke();
  context.setLineDash([]);
}

function arrow(context, [x0, y0], [x1, y1], colour, thickness, dash) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length < 1) return;
  const head = Math.min(0.75 * em, 0.6 * length);
  const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
  const base = [x1 - head * ux, y1 - head * uy];
  stroke(context, [[x0, y0], base], colour, thickness, dash);
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(base[0] - 0.45 * head * uy, base[1] + 0.45 * head * ux);
  context.lineTo(base[0] + 0.45 * head * uy, base[1] - 0.45 * head * ux);
  context.fill();
}

/** Write on a patch of paper, inside the drawing. */
function write(drawing, text, x, y, colour, align = "center") {
  const { context } = drawing;
  const wide = context.measureText(text).width;
  let left = align === "center" ? x - wide / 2 : align === "right" ? x - wide : x;
  left = Math.max(2, Math.min(left, drawing.width - wide - 2));
  const middle = Math.max(0.55 * em, Math.min(y, drawing.height - 0.55 * em));
  context.textBaseline = "middle";
  context.globalAlpha = 0.75;
  context.fillStyle = colours.paper;
  context.fillRect(left - 2, middle - 0.5 * em, wide + 4, em);
  context.globalAlpha = 1;
  context.fillStyle = colour;
  context.fillText(text, left, middle);
}

/** Round numbers from low to high, about as many as wanted. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
  return found;
}

/** Axes with ticks on the picture that stays; `place` turns a pair of numbers into a place of the drawing. */
function drawAxes(drawing, box, place, names) {
  const context = drawing.still.getContext("2d");
  context.clearRect(0, 0, drawing.width, drawing.height);
  context.fillStyle = colours.soft;
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (const tick of ticks(box.x[0], box.x[1], 5)) {
    const [x] = place(tick, box.y[0]);
    stroke(context, [[x, place(tick, box.y[0])[1]], [x, place(tick, box.y[1])[1]]], colours.line, 1);
    context.fillText(numberText(Number(tick.toPrecision(6))), x, drawing.height - 1.7 * em);
  }
  context.fillText(names[0], drawing.width / 2, drawing.height - 0.6 * em);
  context.textAlign = "right";
  for (const tick of ticks(box.y[0], box.y[1], 5)) {
    const [left, y] = place(box.x[0], tick);
    stroke(context, [[left, y], [place(box.x[1], tick)[0], y]], colours.line, 1);
    context.fillText(numberText(Number(tick.toPrecision(6))), left - 0.4 * em, y);
  }
  context.textAlign = "left";
  context.fillText(names[1], 2, 0.6 * em);
  return context;
}

// The plane of the rows

const plane = new Drawing("plane");
let view; // {x: [from, to], y: [from, to]} of the rows, and how to place them

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

function layPlane() {
  plane.resize();
  const [xs, ys, signs] = run.points;
  const inset = { left: 3.2 * em, right: 0.6 * em, top: 1.4 * em, bottom: 2.4 * em };
  const [wide, high] = [plane.width - inset.left - inset.right, plane.height - inset.top - inset.bottom];
  let [x, y] = [extent(xs), extent(ys)].map(([low, high]) => {
    const room = 0.12 * (high - low) || 1;
    return [low - room, high + room];
  });
  const [xScale, yScale] = [wide / (x[1] - x[0]), high / (y[1] - y[0])];
  if (Math.max(xScale / yScale, yScale / xScale) < 4) { // right angles stay right, unless that would flatten the picture
    const scale = Math.min(xScale, yScale);
    const around = ([low, high], size) => [(low + high) / 2 - size / 2, (low + high) / 2 + size / 2];
    [x, y] = [around(x, wide / scale), around(y, high / scale)];
  }
  const place = (a, b) => [
    inset.left + ((a - x[0]) / (x[1] - x[0])) * wide, inset.top + ((y[1] - b) / (y[1] - y[0])) * high,
  ];
  view = { x, y, place };
  const context = drawAxes(plane, view, place, [run.names[xAxis], run.names[yAxis]]);
  const size = Math.max(2, (xs.length > 2000 ? 0.16 : xs.length > 200 ? 0.26 : 0.4) * em);
  for (let i = 0; i < xs.length; i++) drawRow(context, place(xs[i], ys[i]), signs[i], size);
}

/** A disc for the positive class, a square for the negative one. */
function drawRow(context, [x, y], sign, size) {
  context.fillStyle = sign > 0 ? colours.positive : colours.negative;
  context.strokeStyle = colours.paper;
  context.lineWidth = 1;
  context.beginPath();
  if (sign > 0) context.arc(x, y, size, 0, 2 * Math.PI);
  else context.rect(x - 0.88 * size, y - 0.88 * size, 1.76 * size, 1.76 * size);
  context.fill();
  if (size > 4) context.stroke();
}

/** The part of the view where side·(a·x + b·y + c) ≥ 0: its corners, and the two ends of the line itself. */
function halfPlane(a, b, c, side) {
  const corners = [[view.x[0], view.y[0]], [view.x[1], view.y[0]], [view.x[1], view.y[1]], [view.x[0], view.y[1]]];
  const shape = [];
  const ends = [];
  corners.forEach((corner, i) => {
    const next = corners[(i + 1) % 4];
    const [here, there] = [corner, next].map(([x, y]) => side * (a * x + b * y + c));
    if (here >= 0) shape.push(corner);
    if (here >= 0 !== there >= 0) {
      const part = here / (here - there);
      ends.push(corner.map((value, axis) => value + part * (next[axis] - value)));
      shape.push(ends.at(-1));
    }
  });
  return { shape, ends };
}

/** What the other columns of this row, the constant among them, add to its score. */
function offset(w, row) {
  const [columns, values, sign] = run.moves[row];
  let sum = 0;
  columns.forEach((column, j) => {
    if (column !== xAxis && column !== yAxis) sum += w[column] * values[j] * sign;
  });
  return sum;
}

function rowPoint(row) {
  const [columns, values, sign] = run.moves[row];
  const coordinate = (axis) => sign * (values[columns.indexOf(axis)] ?? 0);
  return [coordinate(xAxis), coordinate(yAxis)];
}

function drawPlane(k, before, after) {
  plane.clear();
  const { context } = plane;
  const row = run.example[Math.max(k - 1, 0)];
  const place = (point) => view.place(...point);
  const line = (w) => [w[xAxis], w[yAxis], row === undefined ? 0 : offset(w, row)];
  if (after.some((value) => value !== 0)) {
    for (const side of [1, -1]) {
      context.fillStyle = side > 0 ? colours.positive : colours.negative;
      context.globalAlpha = 0.12;
      context.beginPath();
      for (const point of halfPlane(...line(after), side).shape) context.lineTo(...place(point));
      context.fill();
      context.globalAlpha = 1;
    }
  }
  plane.paste(plane.still);
  if (k > 0) stroke(context, halfPlane(...line(before), 1).ends.map(place), colours.soft, 0.12 * em, [0.5 * em, 0.4 * em]);
  const { ends } = halfPlane(...line(after), 1);
  stroke(context, ends.map(place), colours.ink, 0.18 * em);
  if (ends.length === 2) {
    const foot = [(ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2];
    const length = (0.13 * Math.min(view.x[1] - view.x[0], view.y[1] - view.y[0])) / Math.hypot(after[xAxis], after[yAxis]);
    const tip = place([foot[0] + length * after[xAxis], foot[1] + length * after[yAxis]]);
    arrow(context, place(foot), tip, colours.ink, 0.18 * em);
    write(plane, "w", tip[0] + 0.8 * em, tip[1], colours.ink);
  }
  if (k > 0) {
    const [x, y] = place(rowPoint(row));
    context.strokeStyle = colours.wrong;
    context.lineWidth = 0.22 * em;
    context.beginPath();
    context.arc(x, y, 0.85 * em, 0, 2 * Math.PI);
    context.stroke();
    drawRow(context, [x, y], run.moves[row][2], 0.45 * em);
    write(plane, `row ${row}`, x, y - 1.5 * em, colours.ink);
  }
}

// The plane of the weights: w, the row that is added, and the sum, at a scale that fits this update

const arrows = new Drawing("weights");
const TRAIL = 60; // updates of which the way is drawn
const pair = (w) => [w[xAxis], w[yAxis]];
let spread; // how far w goes in the run: {left, right, down, up}

function measureSpread() {
  const w = Float64Array.from(run.start);
  spread = { left: 1e-300, right: 1e-300, down: 1e-300, up: 1e-300 };
  for (let k = 0; k <= last; k++) {
    spread.left = Math.max(spread.left, -w[xAxis]);
    spread.right = Math.max(spread.right, w[xAxis]);
    spread.down = Math.max(spread.down, -w[yAxis]);
    spread.up = Math.max(spread.up, w[yAxis]);
    if (k < last) learn(w, k);
  }
}

function drawArrows(k, before, after) {
  arrows.clear();
  const { context } = arrows;
  const way = [];
  for (let i = Math.max(0, k - TRAIL); i <= k; i++) way.push(pair(weightsAt(i)));
  const edge = 1.6 * em;
  const [wide, high] = [arrows.width - 2 * edge, arrows.height - 2 * edge];
  const origin = [ // where the whole run fits best
    edge + (wide * spread.left) / (spread.left + spread.right), edge + (high * spread.up) / (spread.down + spread.up),
  ];
  /** The largest factor that keeps a point inside. */
  const fit = ([x, y]) => Math.min(
    x > 0 ? (edge + wide - origin[0]) / x : x < 0 ? (origin[0] - edge) / -x : Infinity,
    y > 0 ? (origin[1] - edge) / y : y < 0 ? (edge + high - origin[1]) / -y : Infinity,
  );
  const largest = Math.min(fit(pair(before)), fit(pair(after)), 1e300);
  const scale = 2 ** (Math.floor(2 * Math.log2(largest)) / 2); // in steps, so that the picture does not tremble
  const place = ([x, y]) => [origin[0] + scale * x, origin[1] - scale * y];
  stroke(context, [[0, origin[1]], [arrows.width, origin[1]]], colours.line, 1);
  stroke(context, [[origin[0], 0], [origin[0], arrows.height]], colours.line, 1);
  const toRight = spread.right >= spread.left;
  const unit = (toRight ? 1 : -1) * ticks(0, (toRight ? arrows.width - origin[0] : origin[0]) / scale, 3)[1];
  const [mark] = place([unit, 0]);
  stroke(context, [[mark, origin[1] - 4], [mark, origin[1] + 4]], colours.soft, 2);
  write(arrows, numberText(Number(unit.toPrecision(6))), mark, origin[1] + (spread.up > spread.down ? 0.9 : -0.9) * em, colours.soft);
  const [ux, uy] = pair(run.separator);
  if (separable && (ux || uy)) {
    const far = Math.min(fit([ux, uy]), 1e300) / scale;
    stroke(context, [origin, place([far * ux, far * uy])], colours.lower, 0.14 * em, [0.15 * em, 0.4 * em]);
    if (far * scale * Math.hypot(ux, uy) > em) write(arrows, "u", ...place([far * ux, far * uy]), colours.lower);
  }
  stroke(context, way.map(place), colours.soft, 1);
  if (k > 0) {
    arrow(context, origin, place(pair(before)), colours.soft, 0.14 * em, [0.5 * em, 0.4 * em]);
    arrow(context, place(pair(before)), place(pair(after)), colours.wrong, 0.45 * em);
  }
  arrow(context, origin, place(pair(after)), colours.ink, 0.2 * em);
  const beyond = (point, text, colour) => {
    const [x, y] = place(point);
    const length = Math.hypot(x - origin[0], y - origin[1]);
    if (length > em) write(arrows, text, x + ((x - origin[0]) / length) * em, y + ((y - origin[1]) / length) * 0.8 * em, colour);
  };
  if (k > 0) {
    const [[x0, y0], [x1, y1]] = [place(pair(before)), place(pair(after))];
    const length = Math.hypot(x1 - x0, y1 - y0);
    const side = (x1 - x0) * (origin[1] - y0) - (y1 - y0) * (origin[0] - x0) > 0 ? 1 : -1; // away from the origin
    const [dx, dy] = [(side * (y1 - y0)) / length, (-side * (x1 - x0)) / length];
    if (length > 3 * em) write(arrows, MOVE, (x0 + x1) / 2 + 1.4 * em * dx, (y0 + y1) / 2 + 1.1 * em * dy, colours.ink);
    beyond(pair(before), "w", colours.soft);
  }
  beyond(pair(after), k > 0 ? "new w" : "w", colours.ink);
}

// The walls

const walls = new Drawing("walls");
const meets = separable && run.bound !== null;
let farthest; // the last k of the chart
let wallPlace;

function layWalls() {
  walls.resize();
  farthest = Math.max(1, last, byId("far").checked ? 1.06 * run.bound : 0);
  const inset = { left: 3.6 * em, right: 1.6 * em, top: 1.4 * em, bottom: 2.4 * em };
  const low = Math.min(0, ...(separable ? [extent(run.progress)[0]] : []));
  const high = 1.05 * Math.max(upperWall(farthest), separable ? lowerWall(farthest) : 0, extent(run.norm)[1]);
  const [wide, tall] = [walls.width - inset.left - inset.right, walls.height - inset.top - inset.bottom];
  wallPlace = (k, value) => [inset.left + (k / farthest) * wide, inset.top + ((high - value) / (high - low)) * tall];
  const names = ["updates k", "length"];
  drawAxes(walls, { x: [0, farthest], y: [low, high] }, wallPlace, names);
  const context = walls.curves.getContext("2d");
  const along = (wall) => Array.from({ length: 201 }, (_, i) => wallPlace((farthest * i) / 200, wall((farthest * i) / 200)));
  const upper = along(upperWall);
  const meet = Math.min(farthest, run.bound ?? farthest);
  context.fillStyle = colours.room;
  context.globalAlpha = 0.2;
  context.beginPath();
  for (let i = 0; i <= 100; i++) context.lineTo(...wallPlace((meet * i) / 100, upperWall((meet * i) / 100)));
  context.lineTo(...wallPlace(meet, separable ? lowerWall(meet) : 0));
  context.lineTo(...wallPlace(0, separable ? lowerWall(0) : 0));
  context.fill();
  context.globalAlpha = 1;
  stroke(context, upper, colours.upper, 0.2 * em);
  if (separable) {
    stroke(context, along(lowerWall), colours.lower, 0.2 * em);
    stroke(context, run.progress.map((value, k) => wallPlace(k, value)), colours.lower, 0.13 * em, [0.4 * em, 0.3 * em]);
  }
  stroke(context, run.norm.map((value, k) => wallPlace(k, value)), colours.ink, 0.14 * em);
}

function drawWalls(k) {
  walls.clear();
  walls.paste(walls.still);
  walls.paste(walls.curves, 0.3);
  const [x, floor] = wallPlace(k, 0);
  walls.paste(walls.curves, 1, Math.min(1, x / walls.width));
  const { context } = walls;
  const top = wallPlace(k, upperWall(k));
  const bottom = separable ? wallPlace(k, lowerWall(k)) : [x, floor];
  stroke(context, [top, bottom], colours.ink, 0.1 * em, [0.2 * em, 0.3 * em]);
  const dots = [[upperWall(k), colours.upper], [run.norm[k], colours.ink]];
  if (separable) dots.unshift([lowerWall(k), colours.lower], [run.progress[k], colours.lower]);
  for (const [value, colour] of dots) {
    context.fillStyle = colour;
    context.beginPath();
    context.arc(...wallPlace(k, value), 0.32 * em, 0, 2 * Math.PI);
    context.fill();
  }
  const beside = (text, at, value, up, colour, align) => {
    const [left, middle] = wallPlace(at, value);
    write(walls, text, left, middle - up * em, colour, align);
  };
  beside(run.formulas[1], 0.4 * farthest, upperWall(0.4 * farthest), 1.1, colours.upper, "right");
  const flat = lowerWall(farthest) < 0.15 * upperWall(farthest);
  if (separable) beside(run.formulas[0], 0.72 * farthest, lowerWall(0.72 * farthest), flat ? 1 : -1, colours.lower, "left");
  if (k > 0) beside("‖w‖", k, run.norm[k], 0.9, colours.ink, k < 0.85 * farthest ? "left" : "right");
}

// Words and numbers

const MOST_WEIGHTS = 12;
const cells = Array.from({ length: Math.min(width, MOST_WEIGHTS) }, () => {
  const line = byId("weights-rows").insertRow();
  const name = document.createElement("th");
  name.scope = "row";
  line.append(name);
  return { line, name, before: line.insertCell(), move: line.insertCell(), after: line.insertCell() };
});

function showWeights(k, before, after) {
  const [columns, values] = k > 0 ? run.moves[run.example[k - 1]] : [[], []];
  let shown = run.names.map((_, j) => j);
  let left = 0;
  if (width > MOST_WEIGHTS) { // those that this row has, the largest first
    const largest = columns.map((column, j) => [Math.abs(values[j]), column]).sort((one, other) => other[0] - one[0]);
    shown = k > 0 ? largest.map(([, column]) => column) : shown;
    left = shown.length - Math.min(shown.length, MOST_WEIGHTS);
  }
  cells.forEach((cell, i) => {
    const column = shown[i];
    cell.line.hidden = column === undefined;
    if (column === undefined) return;
    const at = columns.indexOf(column);
    cell.name.textContent = run.names[column];
    cell.before.textContent = k > 0 ? numberText(before[column], decimals) : "";
    cell.move.textContent = k > 0 ? numberText(at < 0 ? 0 : run.rate * values[at], decimals) : "";
    cell.after.textContent = numberText(after[column], decimals);
  });
  byId("weights-note").textContent = left > 0 ? `and ${count(left, "feature")} more` : "";
}

function showUpdate(k) {
  byId("update-heading").textContent = k === 0 ? "Before the first update" : `Update ${whole.format(k)}`;
  if (k === 0) {
    byId("update-text").textContent = "A row (x, y) is wrong if its margin y⟨w, x⟩ is "
      + (run.delta > 0 ? `at most δ = ${numberText(run.delta)}` : "not above 0")
      + ". The first row that is wrong is then added to w, times its label y = ±1.";
    return;
  }
  const row = run.example[k - 1];
  const [, values, sign] = run.moves[row];
  const margin = run.margin[k - 1];
  const next = margin + run.rate * values.reduce((sum, value) => sum + value * value, 0);
  byId("update-text").textContent = `Row ${row} (${className(sign)}) is ${margin > 0 ? "right by too little" : "wrong"}: its `
    + `margin y⟨w, x⟩ = ${numberText(margin)} ≤ ${numberText(run.delta)}. Added to w, it has the margin ${numberText(next)}.`;
}

function showProof(k) {
  const numbers = [["lower", lowerWall(k)], ["progress", run.progress[k]], ["norm", run.norm[k]], ["upper", upperWall(k)]];
  for (const [name, value] of numbers) byId(`${name}-value`).textContent = numberText(value);
  const compare = (small, large) => (small <= large + 1e-6 * Math.max(1, Math.abs(large)) ? "≤" : ">");
  ["lower", "progress", "upper"].forEach((name, i) => {
    const sign = compare(numbers[i][1], numbers[i + 1][1]);
    byId(`${name}-sign`).textContent = sign;
    byId(`${name}-sign`).classList.toggle("broken", sign === ">");
  });
  byId("walls-text").textContent = proofText(k);
}

function proofText(k) {
  const parts = [];
  if (meets) {
    const most = Math.floor(run.bound * (1 + 1e-9));
    parts.push(`The walls meet at k = ${numberText(run.bound)}: with R = ${numberText(run.radius)} and `
      + `γ = ${numberText(run.gamma)} there are at most ${count(most, "update")}, in any order.`);
  } else if (!separable) {
    parts.push("u has no margin γ > 0, so no lower wall rises.");
  }
  if (run.broken !== null && k >= run.broken) parts.push(`A wall is passed at k = ${run.broken}: γ was claimed too large.`);
  if (run.repeat !== null) {
    const [first, length] = run.repeat;
    const round = k <= first ? "" : ` This is update ${whole.format(((k - first - 1) % length) + 1)} of ${whole.format(length)}.`;
    parts.push(`A cycle: after ${count(first + length, "update")} the weights are again what they were after `
      + `${whole.format(first)}, and so on for ever.${round}`);
  }
  if (k === last) parts.push(run.converged ? `After ${count(last, "update")} no row is wrong.` : "Here the run was stopped.");
  return parts.join(" ");
}

// The step that is shown

const slider = byId("slider");
let step = -1;
let redraw = 0;

function draw() {
  redraw = 0;
  const after = weightsAt(step);
  const before = weightsAt(Math.max(step - 1, 0));
  if (run.axes) {
    drawPlane(step, before, after);
    drawArrows(step, before, after);
  }
  drawWalls(step);
  showWeights(step, before, after);
  showUpdate(step);
  showProof(step);
  byId("position").textContent = `${whole.format(step)} of ${whole.format(last)}`;
  byId("back").disabled = step === 0;
  byId("next").disabled = step === last;
  slider.value = step;
  slider.setAttribute("aria-valuetext", count(step, "update"));
}

let addressTimer;

function show(k) {
  const to = Math.max(0, Math.min(last, Math.round(k)));
  if (to === step) return;
  step = to;
  redraw ||= requestAnimationFrame(draw);
  clearTimeout(addressTimer); // browsers refuse more than a few changes of the address a second
  addressTimer = setTimeout(() => history.replaceState(null, "", `#step=${step}`), 200);
}

const stepOfAddress = () => Number(/^#step=(\d+)$/.exec(location.hash)?.[1] ?? 0);

// Playing

const SPEEDS = [1, 2, 5, 15, 60, 250, 1000, 4000];
let playing = false;
let clock = 0; // when the last frame was
let exact = 0; // the step, with its fraction

function setPlaying(on) {
  if (on === playing || (on && last === 0)) return;
  playing = on;
  byId("play").textContent = on ? "Pause" : "Play";
  byId("update-text").ariaLive = on ? "off" : "polite"; // screen readers cannot keep up with a film
  if (!on) return;
  if (step === last) show(0);
  exact = step;
  clock = performance.now();
  requestAnimationFrame(playFrame);
}

function playFrame(now) {
  if (!playing) return;
  exact += (Math.max(0, now - clock) / 1000) * Number(byId("speed").value);
  clock = now;
  show(Math.floor(Math.min(exact, last)));
  if (step === last) setPlaying(false);
  else requestAnimationFrame(playFrame);
}

function goTo(k) {
  setPlaying(false);
  show(k);
}

const KEYS = {
  ArrowRight: () => goTo(step + 1), ArrowUp: () => goTo(step + 1), ArrowLeft: () => goTo(step - 1), ArrowDown: () => goTo(step - 1),
  PageUp: () => goTo(step + Math.max(1, last / 20)), PageDown: () => goTo(step - Math.max(1, last / 20)),
  Home: () => goTo(0), End: () => goTo(last), " ": () => setPlaying(!playing),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target === byId("speed")) return;
  if (event.key === " " && event.target.closest("button, [type=checkbox]")) return; // it presses the button
  if (!(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
});
slider.addEventListener("input", () => goTo(Number(slider.value)));
byId("play").addEventListener("click", () => setPlaying(!playing));
byId("back").addEventListener("click", () => goTo(step - 1));
byId("next").addEventListener("click", () => goTo(step + 1));
byId("far").addEventListener("change", () => lay());
addEventListener("hashchange", () => goTo(stepOfAddress()));

// The page

function lay() {
  const style = getComputedStyle(document.documentElement);
  em = parseFloat(style.fontSize);
  for (const name of ["paper", "ink", "soft", "line", "negative", "positive", "wrong", "lower", "upper", "room"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  if (run.axes) {
    layPlane();
    arrows.resize();
  }
  layWalls();
  if (step >= 0) draw();
}

function begin() {
  const end = run.converged ? "then no row is wrong" : "then the run was stopped";
  byId("summary").textContent = `${count(run.rows, "row")}, ${count(run.features, "feature")}; ${count(last, "update")}, ${end}`;
  byId("move-name").textContent = `+ ${MOVE}`;
  byId("weights-heading").textContent = `w + ${MOVE}`;
  [byId("lower-formula").textContent, byId("upper-formula").textContent] = run.formulas;
  for (const cell of document.querySelectorAll("#inequality .lower, #inequality .progress, #inequality .of-u")) cell.hidden = !separable;
  byId("inequality").classList.toggle("long", run.formulas.join("").length > 12);
  if (run.axes) {
    measureSpread();
    byId("negative-name").textContent = className(-1);
    byId("positive-name").textContent = className(1);
    const hidden = run.rows - run.drawn.length;
    const notes = hidden > 0 ? [`${count(hidden, "row")} that no update learned from ${hidden === 1 ? "is" : "are"} not drawn.`] : [];
    if (run.features > 2) notes.push("The line is where the hyperplane cuts the plane through this row.");
    byId("plane-note").textContent = notes.join(" ");
  } else {
    byId("plane-panel").hidden = byId("weights-panel").hidden = true;
    document.querySelector("main").classList.add("no-plane");
  }
  byId("far-label").hidden = !meets;
  byId("far").checked = meets && run.bound <= 6 * Math.max(last, 1);
  slider.max = last;
  byId("play").disabled = last === 0;
  const calm = SPEEDS.find((speed) => last / speed <= 30) ?? SPEEDS.at(-1);
  for (const speed of SPEEDS) byId("speed").append(new Option(`${whole.format(speed)} a second`, speed, false, speed === calm));
  lay();
  show(stepOfAddress());
  let size = document.documentElement.clientWidth;
  addEventListener("resize", () => {
    if (size === document.documentElement.clientWidth) return;
    size = document.documentElement.clientWidth;
    lay();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", lay);
}

begin();
