// The points: which there are, what undoes a change, and how they are clicked, moved and removed in a plane. A point is
// [x, y, sign]. Whoever wants to know of a change is in `onPoints`.

const NAMES = { axes: ["x₁", "x₂"], labels: ["−1", "+1"] };
const lab = { limits: {}, ...NAMES }; // what the server says, and the names of what is shown
const VIEW = { x: [-5, 5], y: [-4, 4] }; // of a page without points
let points = [];
let view = VIEW;
let sign = 1; // of the next point
let chosen = -1; // the point that Delete removes
const past = []; // what undo goes back to
const onPoints = [];

function remember() {
  past.push({ points: points.map((point) => [...point]), view, axes: lab.axes, labels: lab.labels });
  if (past.length > 200) past.shift();
}

function pointsChanged() {
  for (const told of onPoints) told();
}

/** Show other points, by default in a view that has room for them. */
function setPoints(found, names = NAMES, seen = null) {
  remember();
  points = found.map((point) => [...point]);
  chosen = -1;
  for (const part of ["axes", "labels"]) lab[part] = names[part]?.length === 2 ? names[part].map(String) : NAMES[part];
  const around = (axis) => withRoom(extent(points.map((point) => point[axis])));
  view = seen ?? (points.length ? { x: around(0), y: around(1) } : VIEW);
  pointsChanged();
}

function undo() {
  const before = past.pop();
  if (!before) return;
  ({ points, view } = before);
  lab.axes = before.axes;
  lab.labels = before.labels;
  chosen = -1;
  pointsChanged();
}

/** A coordinate without digits that nobody sees. */
function roundedPoint(plane, [x, y]) {
  const unit = 10 ** Math.floor(Math.log10((plane.x[1] - plane.x[0]) / 300));
  const inside = (value) => Math.max(-lab.limits.coordinate, Math.min(lab.limits.coordinate, value));
  return [x, y].map((value) => Number((Math.round(inside(value) / unit) * unit).toPrecision(8)));
}

function addPoint(at, itsSign) {
  if (points.length >= lab.limits.points) {
    showProblem(`There are ${whole.format(points.length)} points, which is as many as the lab takes; remove some first.`);
    return;
  }
  remember();
  points.push([...at, itsSign]);
  chosen = points.length - 1;
  pointsChanged();
}

function removePoint(which) {
  if (which < 0 || which >= points.length) return;
  remember();
  points.splice(which, 1);
  chosen = -1;
  pointsChanged();
}

/** The point nearest to a place of a plane, and how far it is. */
function nearest(plane, [left, top]) {
  let found = { which: -1, far: Infinity };
  points.forEach((point, which) => {
    const [x, y] = plane.place(point);
    const far = Math.hypot(x - left, y - top);
    if (far <= found.far) found = { which, far };
  });
  return found;
}

/** Let points be added, moved and removed in a plane, by mouse, touch and keys. `showCross` draws the cross of the keys. */
function editIn(plane, showCross) {
  const { canvas } = plane;
  let dragged = -1;
  let cross = null; // where the keys are, in the plane
  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("mousedown", (event) => event.preventDefault()); // arrow keys go on stepping through the run
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button === 1) return;
    document.activeElement.blur();
    const place = placeOf(event);
    const { which, far } = nearest(plane, place);
    const hit = far < 0.9 * em;
    if (event.altKey) {
      if (hit) removePoint(which);
      return;
    }
    if (hit) {
      remember();
      chosen = which;
      pointsChanged();
    } else {
      const other = event.shiftKey || event.button === 2;
      addPoint(roundedPoint(plane, plane.pointAt(...place)), other ? -sign : sign);
    }
    dragged = chosen;
    if (dragged >= 0) canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (dragged < 0 || dragged >= points.length) return;
    const at = roundedPoint(plane, plane.pointAt(...placeOf(event)));
    if (at[0] === points[dragged][0] && at[1] === points[dragged][1]) return;
    points[dragged] = [...at, points[dragged][2]];
    pointsChanged();
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { dragged = -1; });
  const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    cross ??= [(plane.x[0] + plane.x[1]) / 2, (plane.y[0] + plane.y[1]) / 2];
    if (event.key in MOVES) {
      const part = (event.shiftKey ? 0.1 : 0.025) * (plane.x[1] - plane.x[0]);
      cross = roundedPoint(plane, cross.map((value, axis) => value + part * MOVES[event.key][axis]));
    } else if (event.key === "Enter") {
      addPoint(roundedPoint(plane, cross), event.shiftKey ? -sign : sign);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      removePoint(nearest(plane, plane.place(cross)).which);
    } else {
      return;
    }
    event.preventDefault();
    showCross(cross);
  });
  canvas.addEventListener("blur", () => {
    cross = null;
    showCross(null);
  });
}

function pointsAsCsv() {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const plain = (text) => text.replace("−", "-");
  const label = (its) => quoted(plain(lab.labels[its > 0 ? 1 : 0]));
  const names = lab.axes.map((name) => quoted(name.replace("₁", "1").replace("₂", "2")));
  return [`${names.join(",")},label`, ...points.map(([x, y, its]) => `${x},${y},${label(its)}`)].map((line) => `${line}\n`).join("");
}
