// What is said of a step, and the page.

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
    byId("update-text").textContent = `A row (x, y) is wrong if ${mistakeText()}. `
      + "The first row that is wrong is then added to w, times its label y = ±1.";
    return;
  }
  const row = run.example[k - 1];
  const [, values, sign] = run.moves[row];
  const margin = run.margin[k - 1];
  const next = margin + run.rate * values.reduce((sum, value) => sum + value * value, 0);
  const verdict = margin > 0 ? "right by too little" : "wrong";
  byId("update-text").textContent = `Row ${row} (${className(sign)}) is ${verdict}: its margin y⟨w, x⟩ = `
    + `${numberText(margin)}${levelText(margin)}. Added to w, it has the margin ${numberText(next)}.`;
}

function mistakeText() {
  if (run.zeroSign !== null) return `its predicted label is not y; at the score ⟨w, x⟩ = 0 it is ${className(run.zeroSign)}`;
  return `its margin y⟨w, x⟩ is ${run.delta > 0 ? `at most δ = ${numberText(run.delta)}` : "not above 0"}`;
}

function levelText(margin) {
  if (run.zeroSign === null) return ` ≤ ${numberText(run.delta)}`;
  return margin < 0 ? " < 0" : `, where ${className(run.zeroSign)} is predicted`;
}

function showProof(k) {
  const numbers = [["lower", walls.lower(k)], ["progress", run.progress[k]], ["norm", run.norm[k]], ["upper", walls.upper(k)]];
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
    const place = whole.format(((k - first - 1) % length) + 1);
    const round = k <= first ? "" : ` This is update ${place} of ${whole.format(length)}.`;
    parts.push(`A cycle: after ${count(first + length, "update")} the weights are again what they were after `
      + `${whole.format(first)}, and so on for ever.${round}`);
  }
  if (k === last) parts.push(run.converged ? `After ${count(last, "update")} no row is wrong.` : "Here the run was stopped.");
  return parts.join(" ");
}

// The step that is shown

function draw(step) {
  const after = weightsAt(step);
  const before = weightsAt(Math.max(step - 1, 0));
  if (run.axes) {
    drawPlane(step, before, after);
    drawArrows(step, before, after);
  }
  walls.draw(step);
  showWeights(step, before, after);
  showUpdate(step);
  showProof(step);
}

const player = new Player(draw, () => `#step=${player.step}`);
const stepOfAddress = () => Number(/^#step=(\d+)$/.exec(location.hash)?.[1] ?? 0);
byId("far").addEventListener("change", () => lay());
addEventListener("hashchange", () => player.goTo(stepOfAddress()));

// The page

function lay() {
  readStyle();
  if (run.axes) {
    layPlane();
    arrows.resize();
  }
  walls.lay(run, byId("far").checked);
  if (player.step >= 0) player.refresh();
}

function begin() {
  const end = run.converged ? "then no row is wrong" : "then the run was stopped";
  const size = `${count(run.rows, "row")}, ${count(run.features, "feature")}`;
  byId("summary").textContent = `${size}; ${count(last, "update")}, ${end}`;
  byId("move-name").textContent = `+ ${MOVE}`;
  byId("weights-heading").textContent = `w + ${MOVE}`;
  [byId("lower-formula").textContent, byId("upper-formula").textContent] = run.formulas;
  for (const cell of document.querySelectorAll("#inequality :is(.lower, .progress, .of-u)")) cell.hidden = !separable;
  byId("inequality").classList.toggle("long", run.formulas.join("").length > 12);
  if (run.axes) {
    measureSpread();
    byId("negative-name").textContent = className(-1);
    byId("positive-name").textContent = className(1);
    const hidden = run.rows - run.drawn.length;
    const notes = hidden > 0 ? [`Not drawn: ${count(hidden, "row")} that no update learned from.`] : [];
    if (run.features > 2) notes.push("The line is where the hyperplane cuts the plane through this row.");
    byId("plane-note").textContent = notes.join(" ");
  } else {
    byId("plane-panel").hidden = byId("weights-panel").hidden = true;
    document.querySelector("main").classList.add("no-plane");
  }
  byId("far-label").hidden = !meets;
  byId("far").checked = meets && run.bound <= 6 * Math.max(last, 1);
  player.setLast(last);
  lay();
  player.show(stepOfAddress());
  addEventListener("resize", lay);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", lay);
}

begin();
