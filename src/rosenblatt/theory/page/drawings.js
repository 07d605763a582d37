// The three drawings: the plane of the rows, the plane of the weights, and the walls.

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
  const below = spread.up > spread.down ? 0.9 * em : -0.9 * em;
  write(arrows, numberText(Number(unit.toPrecision(6))), mark, origin[1] + below, colours.soft);
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
    const [dx, dy] = [x - origin[0], y - origin[1]];
    const length = Math.hypot(dx, dy);
    if (length > em) write(arrows, text, x + (dx / length) * em, y + (dy / length) * 0.8 * em, colour);
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
  const ks = Array.from({ length: 201 }, (_, i) => (farthest * i) / 200);
  const along = (wall) => ks.map((k) => wallPlace(k, wall(k)));
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
