// A learner at work on the points: its form, the run that the server computes, and how a step of it is drawn and told.

const STOPPED = {
  converged: "then nothing changes",
  epochs: "stopped by the limit of epochs",
  updates: "stopped by the limit of updates",
  time: "stopped by the limit of time",
  done: "then it was done",
};

class LearnerView {
  constructor(name, changed) {
    this.name = name;
    this.changed = changed; // is called when the run is another one
    const section = byId("run-template").content.cloneNode(true).firstElementChild;
    this.part = (part) => section.querySelector(`[data-part="${part}"]`);
    for (const element of section.querySelectorAll("[data-part]")) element.id = `${name}-${element.dataset.part}`;
    byId("runs").append(section);
    this.part("title").textContent = name.toUpperCase();
    this.part("plane").ariaLabel = `The points and the line of ${name.toUpperCase()}; arrows move a cross, Enter adds a point, Delete removes the nearest`;
    this.plane = new Plane(`${name}-plane`);
    this.walls = new Walls(`${name}-walls`);
    this.run = null;
    this.cross = null;
    editIn(this.plane, (cross) => {
      this.cross = cross;
      this.draw();
    });
    for (const learner of lab.learners) this.part("learner").append(new Option(learner.name));
    this.part("epochs").max = lab.limits.epochs;
    this.part("updates").max = lab.limits.updates;
    const form = section.querySelector("form");
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("change", (event) => {
      if (event.target === this.part("learner")) this.setJob({ ...this.readJob(), settings: {} });
      this.ask();
      this.changed();
    });
    this.part("proof").addEventListener("toggle", () => this.lay());
    this.setJob(lab.job);
  }

  get last() {
    return this.run ? this.run.example.length : 0;
  }

  // The form

  /** Fill in the form; what the learner has no field for is left out. */
  setJob(job) {
    const learner = lab.learners.find(({ name }) => name === job.learner) ?? lab.learners[0];
    this.learner = learner;
    this.part("learner").value = learner.name;
    this.part("order").replaceChildren(...learner.orders.map((order) => new Option(order)));
    this.part("order").value = learner.orders.includes(job.order) ? job.order : learner.orders[0] ?? "";
    this.part("order-label").hidden = learner.orders.length === 0;
    for (const limit of ["epochs", "updates", "seed"]) this.part(limit).value = job[limit] ?? lab.job[limit];
    this.inputs = Object.fromEntries(learner.fields.map((field) => [field.name, fieldInput(field, job.settings?.[field.name])]));
    this.part("fields").replaceChildren(...learner.fields.map(({ name, allowed }) => {
      const label = document.createElement("label");
      label.title = allowed;
      label.append(`${name} `, this.inputs[name]);
      return label;
    }));
  }

  /** The job that the form describes: of the settings those that are not the defaults. */
  readJob() {
    const settings = {};
    for (const field of this.learner.fields) {
      const value = fieldValue(field, this.inputs[field.name]);
      if (value !== field.default) settings[field.name] = value;
    }
    const order = this.part("order").value || lab.job.order;
    const numbers = Object.fromEntries(["epochs", "updates", "seed"].map((limit) => [limit, Number(this.part(limit).value)]));
    return { learner: this.part("learner").value, settings, order, ...numbers };
  }

  // The run

  /** Have the run computed; while one is being computed, the next request waits and only the newest is sent. */
  async ask() {
    this.waiting = true;
    if (this.asking) return;
    this.asking = true;
    while (this.waiting) {
      this.waiting = false;
      await this.askOnce();
    }
    this.asking = false;
  }

  async askOnce() {
    const signs = new Set(points.map((point) => point[2]));
    if (signs.size < 2) {
      this.show(null, points.length ? "Add a point of the other class: Shift-click, or a right click." : "Click in the plane to add points.");
      return;
    }
    const asked = points.map((point) => [...point]);
    const box = [...this.plane.x, ...this.plane.y];
    const slow = setTimeout(() => { this.part("step").textContent = "Computing …"; }, 400);
    try {
      const answer = await send("run", JSON.stringify({ points: asked, box, ...this.readJob() }), "application/json");
      this.show({ ...answer, points: asked, box }, "");
    } catch (error) {
      this.show(null, error.message);
    } finally {
      clearTimeout(slow);
    }
  }

  show(run, problem) {
    this.run = run;
    this.pictures = new Map();
    this.part("problem").textContent = problem;
    this.part("problem").hidden = problem === "";
    this.part("facts").textContent = run ? this.factsText() : "";
    this.part("proof").hidden = !run?.proof;
    this.layWalls();
    this.changed();
  }

  // The drawings

  lay() {
    this.plane.lay(view.x, view.y, lab.axes);
    this.plane.addRows(...[0, 1, 2].map((part) => points.map((point) => point[part])));
    this.layWalls();
    this.draw();
  }

  layWalls() {
    if (!this.run?.proof || !this.part("proof").open) return;
    const { proof } = this.run;
    this.walls.lay(proof, proof.bound !== null && proof.bound <= 6 * Math.max(this.last, 1));
  }

  /** Draw step k, by default the one that was drawn before. */
  draw(k = this.step ?? 0) {
    this.step = k;
    const { plane, run } = this;
    const at = Math.min(k, this.last);
    plane.clear();
    const line = run?.lines?.[at];
    const seen = line?.some((value) => value !== 0);
    if (seen) plane.shade(line);
    const grid = run && !run.lines && at > 0 ? this.gridAt(at) : null;
    if (grid) plane.context.drawImage(grid.picture, ...grid.corner, ...grid.size);
    plane.paste(plane.still);
    if (grid) for (const edge of grid.edges) stroke(plane.context, edge, colours.ink, 0.18 * em);
    if (run?.lines && at > 0) {
      if (run.lines[at - 1].some((value) => value !== 0)) plane.drawLineBefore(run.lines[at - 1]);
      if (seen) plane.drawLine(line);
    }
    const row = at > 0 ? run.example[at - 1] : null;
    if (row !== null && run.points[row]) plane.drawWrongRow(run.points[row], run.points[row][2], `point ${row}`);
    if (this.cross) this.drawCross();
    this.part("step").textContent = run ? this.stepText(at) : "";
    const laid = run?.proof && this.walls.run === run.proof; // not yet in the frame in which the chart is opened
    if (laid && this.part("proof").open) this.walls.draw(Math.min(at, run.proof.norm.length - 1));
  }

  drawCross() {
    const [x, y] = this.plane.place(this.cross);
    stroke(this.plane.context, [[x - em, y], [x + em, y]], colours.ink, 0.12 * em);
    stroke(this.plane.context, [[x, y - em], [x, y + em]], colours.ink, 0.12 * em);
  }

  /** The scores of the last grid until a step: a picture of two tints, its place, and where the scores are 0. */
  gridAt(at) {
    const { plane, run } = this;
    const step = Math.max(...Object.keys(run.grids).map(Number).filter((kept) => kept <= at));
    if (!this.pictures.has(step)) this.pictures.set(step, gridPicture(run.grids[step]));
    const { picture, edges, last } = this.pictures.get(step);
    const [left, top] = plane.place([run.box[0], run.box[3]]);
    const [right, bottom] = plane.place([run.box[1], run.box[2]]);
    const place = ([column, row]) => [left + (column / last) * (right - left), bottom - (row / last) * (bottom - top)];
    return { picture, corner: [left, top], size: [right - left, bottom - top], edges: edges.map((edge) => edge.map(place)) };
  }

  // Words

  stepText(at) {
    const { run } = this;
    const wrong = `${whole.format(run.errors[at])} of ${count(run.points.length, "point")} on the wrong side`;
    if (at === 0) return `Before the first ${run.unit}: nothing is learned`;
    const row = run.example[at - 1];
    if (run.unit === "update" && row !== null) return `Update ${whole.format(at)}: point ${row} · ${wrong}`;
    return `${{ update: "In the end", epoch: `Epoch ${whole.format(at)}`, run: "In the end" }[run.unit]} · ${wrong}`;
  }

  factsText() {
    const { run } = this;
    const updates = run.example.filter((row) => row !== null).length;
    const done = run.unit === "update" ? `${count(updates, "update")}, ${count(run.mistakes.at(-1), "mistake")}` : count(run.epochs, "epoch");
    const facts = [`${done} in ${count(run.epochs, "epoch")}; ${STOPPED[run.stopped]}`];
    if (run.margin !== null) facts.push(`${run.separates ? "nearest" : "worst"} point ${numberText(run.margin)} from the line`);
    const { proof } = run;
    if (proof?.bound) {
      facts.push(`at most ${whole.format(Math.floor(proof.bound * (1 + 1e-9)))} updates, as R = ${numberText(proof.radius)} and γ = ${numberText(proof.gamma)}`);
    } else if (proof) facts.push("no line separates the points");
    if (proof?.repeat) facts.push(`a cycle of ${count(proof.repeat[1], "update")} from update ${whole.format(proof.repeat[0])} on`);
    return `${facts.join(" · ")}.`;
  }
}

// Fields of a form

function fieldInput(field, value = field.default) {
  if (field.kind === "choice") {
    const select = document.createElement("select");
    select.append(...field.words.map((word) => new Option(word)));
    select.value = field.words.includes(value) ? value : field.default;
    return select;
  }
  const input = document.createElement("input");
  if (field.kind === "flag") {
    input.type = "checkbox";
    input.checked = value === true;
    return input;
  }
  const text = field.optional || field.words.length > 0; // it may be empty, or a word
  input.type = text ? "text" : "number";
  input.step = field.whole ? "1" : "any";
  input.value = value ?? "";
  if (text) input.placeholder = [...field.words, ...(field.optional ? ["none"] : [])].join(" or ");
  return input;
}

function fieldValue(field, input) {
  if (field.kind === "flag") return input.checked;
  if (field.kind === "choice" || field.words.includes(input.value)) return input.value;
  if (input.value.trim() === "") return field.optional ? null : field.default;
  return Number.isFinite(Number(input.value)) ? Number(input.value) : input.value; // the server says what is wrong with it
}

// A grid of scores as a picture: two tints, and the edges between them

function gridPicture(packed) {
  const scores = new Int16Array(Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0)).buffer);
  const size = Math.round(Math.sqrt(scores.length));
  const score = (column, row) => scores[row * size + column];
  const fine = 4; // pixels from one score to the next
  const wide = (size - 1) * fine + 1;
  const picture = document.createElement("canvas");
  picture.width = picture.height = wide;
  const context = picture.getContext("2d");
  for (const side of [1, -1]) {
    context.fillStyle = side > 0 ? colours.positive : colours.negative;
    context.globalAlpha = 0.12;
    for (let y = 0; y < wide; y++) {
      let from = 0;
      for (let x = 0; x <= wide; x++) {
        const inside = x < wide && (between(score, size, x / fine, (wide - 1 - y) / fine) >= 0) === (side > 0);
        if (inside) continue;
        if (x > from) context.fillRect(from, y, x - from, 1);
        from = x + 1;
      }
    }
  }
  return { picture, edges: gridEdges(score, size), last: size - 1 };
}

function between(score, size, x, y) {
  const [column, row] = [Math.min(Math.floor(x), size - 2), Math.min(Math.floor(y), size - 2)];
  const [a, b] = [x - column, y - row];
  const low = score(column, row) * (1 - a) + score(column + 1, row) * a;
  const high = score(column, row + 1) * (1 - a) + score(column + 1, row + 1) * a;
  return low * (1 - b) + high * b;
}

/** Where the scores change their sign, as pieces of lines: one or two in each square of four scores. */
function gridEdges(score, size) {
  const edges = [];
  for (let row = 0; row < size - 1; row++) {
    for (let column = 0; column < size - 1; column++) {
      const corners = [[column, row], [column + 1, row], [column + 1, row + 1], [column, row + 1]];
      const ends = [];
      corners.forEach((corner, i) => {
        const next = corners[(i + 1) % 4];
        const [here, there] = [score(...corner), score(...next)];
        if (here >= 0 === there >= 0) return;
        const part = here / (here - there);
        ends.push(corner.map((value, axis) => value + part * (next[axis] - value)));
      });
      for (let i = 0; i + 1 < ends.length; i += 2) edges.push([ends[i], ends[i + 1]]);
    }
  }
  return edges;
}
