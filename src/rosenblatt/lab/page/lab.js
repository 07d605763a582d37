// The page: what it begins with, its tools, its address, and the two learners with one slider.

let views = [];
let player;
let wantedStep = null; // of the address, until there is a run that has it

async function send(path, body, type) {
  let response;
  try {
    response = await fetch(path, body === undefined ? {} : { method: "POST", body, headers: { "Content-Type": type } });
  } catch {
    throw new Error("The lab does not answer; is `rosenblatt lab` still running?");
  }
  const answer = await response.json();
  const place = answer.line ? `line ${answer.line}: ` : "";
  if (!response.ok) throw new Error(place + answer.detail + (answer.hint ? `; ${answer.hint}` : ""));
  return answer;
}

function showProblem(text) {
  byId("problem").textContent = text;
  byId("problem").hidden = text === "";
}

// The address: points, view, names, the two jobs and the step, so that a link shows the same

function address() {
  const parts = new URLSearchParams();
  parts.set("p", points.map((point) => point.join(",")).join(";"));
  parts.set("v", [...view.x, ...view.y].map((value) => Number(value.toPrecision(6))).join(","));
  const { axes, labels } = lab;
  if (String([axes, labels]) !== String([NAMES.axes, NAMES.labels])) parts.set("n", JSON.stringify({ axes, labels }));
  for (const learner of views) parts.set(learner.name, JSON.stringify(learner.readJob()));
  if (player.step < player.last) parts.set("k", player.step);
  return `#${parts}`;
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  if (!parts.has("p")) return false;
  const numbers = (text) => text.split(",").map(Number);
  const found = parts.get("p").split(";").filter(Boolean).map(numbers);
  const valid = found.every((point) => point.length === 3 && point.every(Number.isFinite) && Math.abs(point[2]) === 1);
  if (!valid) {
    showProblem("The address has points that cannot be read.");
    return false;
  }
  const unread = [];
  const parse = (name) => {
    try {
      return JSON.parse(parts.get(name)) ?? {};
    } catch {
      unread.push(name);
      return {};
    }
  };
  for (const learner of views) learner.setJob({ ...lab.job, ...parse(learner.name) });
  wantedStep = /^\d+$/.test(parts.get("k") ?? "") ? Number(parts.get("k")) : null;
  const [x0, x1, y0, y1] = numbers(parts.get("v") ?? "");
  setPoints(found.slice(0, lab.limits.points), parse("n"), x0 < x1 && y0 < y1 ? { x: [x0, x1], y: [y0, y1] } : null);
  if (unread.length) showProblem(`The address has parts that cannot be read: ${unread.join(", ")}.`);
  return true;
}

// What changes

function runChanged() {
  const last = Math.max(...views.map((learner) => learner.last));
  player.setLast(last);
  if (views.every((learner) => learner.run || !learner.asking) && wantedStep !== null) {
    player.step = Math.max(0, Math.min(last, wantedStep));
    wantedStep = null;
  } else if (wantedStep === null) {
    player.step = last;
  }
  player.refresh();
  player.noteAddress();
}

function layAll() {
  readStyle();
  for (const learner of views) learner.lay();
}

onPoints.push(() => {
  showProblem("");
  player?.setPlaying(false);
  byId("undo").disabled = past.length === 0;
  byId("summary").textContent = count(points.length, "point");
  [byId("negative-name").textContent, byId("positive-name").textContent] = lab.labels;
  for (const learner of views) {
    learner.lay();
    learner.ask();
  }
});

function chooseSign(its) {
  sign = its;
  byId("positive").setAttribute("aria-pressed", its > 0);
  byId("negative").setAttribute("aria-pressed", its < 0);
}

/** Show an example; where it is one without an intercept, the learners have none. */
function showExample(example) {
  for (const learner of views) {
    const job = learner.readJob();
    const { fit_intercept, ...settings } = job.settings;
    const has = learner.learner.fields.some(({ name }) => name === "fit_intercept");
    learner.setJob({ ...job, settings: has && !example.intercept ? { ...settings, fit_intercept: false } : settings });
  }
  setPoints(example.points, example);
}

async function loadFile(file) {
  try {
    showExample(await send("points", file, "text/csv"));
  } catch (error) {
    showProblem(error.message);
  }
}

function saveFile() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([pointsAsCsv()], { type: "text/csv" }));
  link.download = "points.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Tools and keys

byId("negative").addEventListener("click", () => chooseSign(-1));
byId("positive").addEventListener("click", () => chooseSign(1));
byId("undo").addEventListener("click", undo);
byId("clear").addEventListener("click", () => setPoints([]));
byId("preset").addEventListener("change", () => {
  const example = lab.presets[byId("preset").value];
  if (example) showExample(example);
  byId("preset").value = "";
});
byId("load").addEventListener("click", () => byId("file").click());
byId("file").addEventListener("change", () => {
  const [file] = byId("file").files;
  if (file) loadFile(file);
  byId("file").value = "";
});
byId("download").addEventListener("click", saveFile);
document.addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dropping");
  const [file] = event.dataTransfer.files;
  if (file) loadFile(file);
});
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.target.closest("input:not([type=range], [type=checkbox])")) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "z") undo();
  else if (event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "1" || event.key === "2") chooseSign(event.key === "1" ? -1 : 1);
  else if (event.key === "Delete") removePoint(chosen);
  else return;
  event.preventDefault();
});
document.addEventListener("click", (event) => {
  for (const open of document.querySelectorAll("details[open]:not(.proof)")) if (!open.contains(event.target)) open.open = false;
});
addEventListener("hashchange", () => readAddress());
addEventListener("resize", layAll);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", layAll);

async function watchCompiling() {
  for (;;) {
    let state;
    try {
      state = await send("compiling");
    } catch {
      return;
    }
    const done = state.compiled.length;
    byId("compiling").textContent = done < state.total ? `Compiling learners: ${done} of ${state.total}` : "";
    if (done >= state.total) return;
    await new Promise((resolve) => { setTimeout(resolve, 500); });
  }
}

async function begin() {
  try {
    Object.assign(lab, await send("lab"));
  } catch (error) {
    showProblem(error.message);
    return;
  }
  watchCompiling();
  readStyle();
  lab.presets.forEach((example, i) => byId("preset").append(new Option(example.name, i)));
  player = new Player((k) => views.forEach((learner) => learner.draw(k)), address);
  views = ["a", "b"].map((name) => new LearnerView(name, runChanged));
  views[1].setJob({ ...lab.job, learner: "PassiveAggressiveClassifier" });
  player.step = 0;
  if (!readAddress()) {
    const said = byId("problem").textContent;
    showExample(lab.points ?? { points: [], intercept: true });
    showProblem(said);
  }
  past.length = 0;
  byId("undo").disabled = true;
}

begin();
