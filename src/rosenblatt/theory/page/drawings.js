// The three drawings: the plane of the rows, the plane of the weights, and the walls.

// The plane of the rows

const plane = new Plane("plane");

function layPlane() {
  const [xs, ys, signs] = run.points;
  plane.lay(withRoom(extent(xs)), withRoom(extent(ys)), [run.names[xAxis], run.names[yAxis]]);
  plane.addRows(xs, ys, signs);
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
  const row = run.example[Math.max(k - 1, 0)];
  const line = (w) => [w[xAxis], w[yAxis], row === undefined ? 0 : offset(w, row)];
  if (after.some((value) => value !== 0)) plane.shade(line(after));
  plane.paste(plane.still);
  if (k > 0) plane.drawLineBefore(line(before));
  plane.drawLine(line(after));
  if (k > 0) plane.drawWrongRow(rowPoint(row), run.moves[row][2], `row ${row}`);
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
  const largest = [ // of weights that are 0 any; then that of the next, or of u
    Math.min(fit(pair(before)), fit(pair(after))), fit(pair(weightsAt(Math.min(k + 1, last)))), fit(pair(run.separator)),
  ].find(Number.isFinite) ?? 1;
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
    const far = fit([ux, uy]) / scale;
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

const walls = new Walls("walls");
const meets = separable && run.bound !== null;
