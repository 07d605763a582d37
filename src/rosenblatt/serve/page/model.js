// One model: its numbers, its errors over time, its states, its weights, and where it was wrong last.

import { coarsen, describePoint, describeState, drawSparkline, ErrorChart, overallShare, placeOf, pointsOf, windowShare } from "./chart.js";
import { askFirst } from "./dialogs.js";
import { byId, bytes, count, counted, element, labelKey, labelText, percent, share, showBars, showList, showProblem, time, write } from "./elements.js";
import { describeExample } from "./examples.js";
import { paced, settled } from "./refresh.js";
import { download, getJson, modelPath, send, sendJson } from "./server.js";
import { showSuggestions, Trial } from "./trial.js";

const POINTS = 50; // of the chart
const PHONE_POINTS = 25;
const LABEL_POINTS = 20; // of the small line of each label
const WEIGHTS = 12; // of each label
const WEIGHTS_OF_ONE = 40; // where one label is chosen
const COLUMNS = 4; // labels whose weights are shown at once
const LABELS = 50; // rows of the table by label
const WRONG = 10; // wrong predictions

export class ModelView {
  #name = null;
  #opening = 0; // counts the models that were opened, to know an answer that comes too late
  #model = null; // the description, with `recent` once an event has brought it; null until it has come
  #points = []; // of the chart
  #finePoints = []; // one for each window that the server has
  #state = null; // an earlier log entry that is looked at; null is the latest
  #weightLabel = "";
  #weightsVisible = false; // the server has to sort them, so they are asked for when somebody sees them
  #weightsStale = false;
  #trial = new Trial();
  #chart = new ErrorChart(byId("chart"), {
    hover: (point) => this.#read(point),
    pick: (point) => this.#setState(point.seq),
  });
  #refreshDescription = paced(700, () => this.#loadDescription());
  #refreshHistory = paced(700, () => this.#loadHistory());
  #refreshLabels = paced(4000, () => this.#loadLabels());
  #refreshWeights = paced(2000, () => this.#loadWeights());
  #showWeights = settled(250, () => this.#refreshWeights(true));

  /**
   * `recent(name)` returns what events said of late of a model; `missing(name)` is called when the server does not have it,
   * `failed(name, problem)` when it cannot be shown, `deleted(name)` when it was deleted here.
   */
  constructor({ recent, missing, failed, deleted }) {
    Object.assign(this, { recent, missing, failed, deleted });
    new IntersectionObserver(([entry]) => {
      this.#weightsVisible = entry.isIntersecting;
      if (this.#weightsVisible && this.#weightsStale) this.#refreshWeights(true);
    }).observe(byId("weights-section"));
    byId("state-slider").addEventListener("input", (event) => this.#setState(Number(event.target.value)));
    byId("state-seq").addEventListener("change", (event) => this.#typeState(event.target));
    byId("state-latest").addEventListener("click", () => this.#setState(null));
    byId("state-back").addEventListener("click", () => this.#askToGoBack());
    byId("labels-panel").addEventListener("toggle", () => this.#refreshLabels(true));
    byId("labels-filter").addEventListener("input", () => this.#showLabels());
    byId("table-panel").addEventListener("toggle", () => this.#showTable());
    byId("weights-label").addEventListener("input", (event) => {
      this.#weightLabel = event.target.value.trim();
      showSuggestions(byId("weights-known"), this.#model?.classes ?? [], this.#weightLabel);
      this.#showWeights();
    });
    byId("download-file").addEventListener("click", () => this.#download("file", ".model"));
    byId("download-log").addEventListener("click", () => this.#download("log", ".jsonl"));
    byId("delete-open").addEventListener("click", () => this.#askToDelete());
  }

  get name() {
    return this.#name;
  }

  /** Whether the model that was opened is there to be seen. */
  get shown() {
    return this.#model !== null;
  }

  /** Show a model; null shows none. */
  async open(name) {
    const opening = (this.#opening += 1);
    this.#name = name;
    this.#model = null;
    this.#points = this.#finePoints = [];
    this.#state = null;
    this.#weightLabel = "";
    this.labelCounts = null;
    byId("model").hidden = true;
    if (name === null) return;
    for (const place of ["model-problem", "chart-problem", "state-problem", "labels-problem", "weights-problem"]) showProblem(byId(place), null);
    for (const place of ["state-done", "labels-more", "weights-more", "weights-at", "download-status"]) write(byId(place), "");
    byId("weights-label").value = "";
    byId("labels-filter").value = "";
    for (const list of ["weights", "wrongs", "labels-rows", "table-rows"]) byId(list).replaceChildren();
    let description;
    try {
      description = await getJson(modelPath(name));
    } catch (problem) {
      if (this.#opening !== opening || problem.status === 401) return;
      if (problem.status === 404) this.missing(name);
      else this.failed(name, problem);
      return;
    }
    if (this.#opening === opening) this.#begin(description);
  }

  #begin(description) {
    this.#model = { ...description, recent: this.recent(description.name) };
    this.#trial.open(this.#model);
    this.#showModel();
    this.#chart.mark(null);
    this.#chart.show([]);
    for (const place of ["figure-wrong", "figure-wrong-of"]) write(byId(place), "");
    byId("model").hidden = false;
    this.#refreshHistory(true);
    this.#refreshWeights(true);
    this.#refreshLabels(true);
  }

  /** The model changed: `summary` is what an event said of it. */
  update(summary) {
    if (!this.#model || summary.name !== this.#name) return;
    if (summary.seq === this.#model.seq && this.#model.recent) return;
    const { classes, ...changes } = summary; // an event has their number, a description their names: those come with the next
    this.#take({ ...this.#model, ...changes });
    this.#refreshDescription();
  }

  /** Show newer facts of the model, and ask for the rest of what changed with them. */
  #take(model) {
    const learned = model.seq !== this.#model.seq;
    this.#model = model;
    this.#showModel();
    this.#trial.changed(model);
    if (!learned) return;
    this.#refreshHistory();
    this.#refreshLabels();
    if (this.#state === null) this.#refreshWeights();
  }

  /** Load from the server, unless the page moved on to another model meanwhile; a problem is shown at `place`. */
  async #load(place, path, show) {
    const [name, opening] = [this.#name, this.#opening];
    if (!this.#model) return;
    let answer;
    try {
      answer = await path(name);
    } catch (problem) {
      if (this.#opening !== opening) return;
      if (problem.status === 404 && place === "model-problem") this.missing(name);
      else if (problem.status !== 401) showProblem(byId(place), problem);
      return;
    }
    if (this.#opening !== opening) return;
    showProblem(byId(place), null);
    show(answer);
  }

  async #loadDescription() {
    await this.#load("model-problem", (name) => getJson(modelPath(name)), (description) => {
      this.#take({ ...description, recent: this.#model.recent });
    });
  }

  #showModel() {
    const model = this.#model;
    write(byId("model-name"), model.name);
    write(byId("model-learner"), [model.learner, model.hashing ? `hashed into ${count(model.hashing)} buckets` : null].filter(Boolean).join(", "));
    write(byId("figure-seen"), count(model.seen));
    write(byId("figure-recent"), model.recent ? share(model.recent.wrong, model.recent.seen) : "–");
    write(byId("figure-recent-of"), model.recent?.seen ? `${count(model.recent.wrong)} of the last ${count(model.recent.seen)}` : "");
    write(byId("figure-classes"), count(model.classes.length));
    write(byId("figure-features"), count(model.features));
    write(byId("figure-seq"), count(model.seq));
    byId("state-seq").max = model.seq;
    if (model.failure) showProblem(byId("model-problem"), new Error(`This model cannot learn: ${model.failure}`));
    const facts = [
      ["Wrong predictions", `${count(model.wrong)} (predicted before learning, by the model as it is served)`],
      ["Mistakes", `${count(model.mistakes)} (the learner's own count: a tie is a mistake)`],
      ["Updates", `${count(model.updates)} (changes of the weights)`],
      ["Memory", bytes(model.memory_bytes)],
      ["Log", bytes(model.log_bytes)],
      ["Labels", abridgeLabels(model.classes)],
      ["Parameters", Object.entries(model.parameters).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", ") || "as the learner has them"],
      ["Created", time(model.created)],
      ["Changed", time(model.changed)],
      ["Snapshots", model.snapshots.length ? `${counted(model.snapshots.length, "snapshot")}, the last after log entry ${count(model.snapshots.at(-1))}` : "none yet"],
    ];
    showList(byId("facts"), facts, {
      key: ([name]) => name,
      make: ([name]) => element("div", {}, element("dt", {}, name), element("dd")),
      update: (row, [, text]) => write(row.lastElementChild, text),
    });
    showSuggestions(byId("weights-known"), model.classes, this.#weightLabel);
    this.#showState();
  }

  // Errors over time

  async #loadHistory() {
    await this.#load("chart-problem", (name) => getJson(modelPath(name, "history")), (history) => {
      this.#points = pointsOf(coarsen(history.windows, byId("chart").clientWidth < 500 ? PHONE_POINTS : POINTS));
      this.#finePoints = pointsOf(history.windows);
      this.#chart.show(this.#points);
      const last = this.#points.at(-1); // a model from a file has seen more examples than were counted here
      write(byId("figure-wrong"), last ? share(last.wrong, last.seen) : "–");
      write(byId("figure-wrong-of"), last ? `${count(last.wrong)} of ${count(last.seen)}` : "");
      this.#showState();
      this.#read(null);
      this.#showTable();
      this.#showWrong(history.last_wrong ?? []);
    });
  }

  /** Say the numbers at a point, or else those of the state that is looked at. */
  #read(point) {
    const shown = point ?? this.#points.at(-1);
    if (!point && this.#state !== null) write(byId("chart-reading"), this.#describeState());
    else write(byId("chart-reading"), shown ? describePoint(shown) : "No examples yet.");
  }

  #showTable() {
    if (!byId("table-panel").open) return;
    showList(byId("table-rows"), [...this.#points].reverse(), {
      key: (point) => point.seen,
      make: () => element("tr", {}, ...[0, 1, 2, 3].map(() => element("td", { class: "number" }))),
      update(row, point) {
        const cells = [count(point.seen), count(point.seq), `${percent(windowShare(point))} of ${count(point.windowSeen)}`, percent(overallShare(point))];
        cells.forEach((text, index) => write(row.children[index], text));
      },
    });
  }

  async #loadLabels() {
    if (!byId("labels-panel").open) return;
    await this.#load("labels-problem", (name) => getJson(modelPath(name, "history", { labels: true })), (history) => {
      const windows = coarsen(history.windows, LABEL_POINTS);
      const labels = new Map();
      windows.forEach((window, index) => {
        for (const [label, { seen, wrong }] of Object.entries(window.labels ?? {})) {
          if (!labels.has(label)) labels.set(label, { label, seen: 0, wrong: 0, counts: new Map() });
          const sums = labels.get(label);
          sums.seen += seen;
          sums.wrong += wrong;
          sums.counts.set(index, { seen, wrong });
        }
      });
      this.labelCounts = { windows: windows.length, rows: [...labels.values()].sort((one, other) => other.seen - one.seen) };
      this.#showLabels();
    });
  }

  #showLabels() {
    const { windows, rows } = this.labelCounts ?? { windows: 0, rows: [] };
    byId("labels-filter").hidden = rows.length <= 10;
    const typed = byId("labels-filter").value.trim();
    const found = rows.filter(({ label }) => label.includes(typed));
    showList(byId("labels-rows"), found.slice(0, LABELS), {
      key: ({ label }) => label,
      make: ({ label }) =>
        element("tr", {},
          element("th", { scope: "row" }, labelText(label)), element("td"), element("td", { class: "number" }), element("td", { class: "number" })),
      update(row, { seen, wrong, counts }) {
        const [, drawing, wrongCell, seenCell] = row.children;
        const nothing = { seen: 0, wrong: 0 };
        drawing.replaceChildren(drawSparkline(Array.from({ length: windows }, (_, index) => counts.get(index) ?? nothing)));
        write(wrongCell, share(wrong, seen));
        write(seenCell, count(seen));
      },
    });
    write(byId("labels-more"), found.length > LABELS ? `The ${LABELS} most frequent; ${counted(found.length - LABELS, "more label")}.` : "");
  }

  #showWrong(wrong) {
    const shown = wrong.slice(0, WRONG);
    byId("wrong-none").hidden = shown.length > 0;
    showList(byId("wrongs"), shown, {
      key: ({ seq, row }) => `${seq}/${row}`,
      make: (item) => {
        const kept = item.text !== undefined || item.x !== undefined;
        const button = kept ? element("button", { type: "button", "aria-label": `Try it: ${describeExample(item)}` }, "Try it") : null;
        button?.addEventListener("click", () => this.#trial.try(item));
        return element("li", {},
          element("p", { class: "what" }, describeExample(item)),
          element("p", { class: "note" },
            "predicted ", element("b", {}, item.predicted === null ? "nothing" : labelText(item.predicted)),
            ", was ", element("b", {}, labelText(item.label)),
            ` · log entry ${count(item.seq)}, ${time(item.time)}`),
          button);
      },
      update: () => {},
    });
  }

  // States in time

  #describeState() {
    return this.#state === 1 ? "Log entry 1: the model as it was created." : describeState(this.#state, placeOf(this.#state, this.#finePoints));
  }

  #typeState(field) {
    const seq = field.value === "" ? null : Number(field.value);
    if (field.validity.badInput || (seq !== null && !(Number.isInteger(seq) && seq >= 1 && seq <= this.#model.seq))) {
      showProblem(byId("state-problem"), new Error(`The log entry must be a whole number from 1 to ${count(this.#model.seq)}.`));
      return;
    }
    this.#setState(seq);
  }

  #setState(seq) {
    showProblem(byId("state-problem"), null);
    this.#state = seq === null || seq >= this.#model.seq ? null : seq;
    this.#showState();
    this.#read(null);
    write(byId("state-done"), "");
    this.#trial.setState(this.#state);
    this.#showWeights();
  }

  #showState() {
    byId("state").hidden = this.#model.seq < 2;
    const slider = byId("state-slider");
    slider.max = this.#model.seq;
    slider.value = this.#state ?? this.#model.seq;
    slider.setAttribute("aria-valuetext", this.#state === null ? "the latest state" : this.#describeState());
    this.#chart.mark(this.#state === null ? null : this.#state === 1 ? 0 : placeOf(this.#state, this.#finePoints)?.seen ?? null);
    const field = byId("state-seq");
    if (document.activeElement !== field || this.#state !== null) field.value = this.#state ?? this.#model.seq;
    byId("state-latest").disabled = this.#state === null;
    byId("state-back").disabled = this.#state === null;
    write(byId("state-text"), this.#state === null
      ? "This is the latest state. Choose an earlier one to compare it with, or to go back to."
      : `You look at the state after log entry ${count(this.#state)} of ${count(this.#model.seq)}: an example shows what was predicted then, beside now.`);
  }

  #askToGoBack() {
    const to = this.#state;
    const [name, seq] = [this.#name, this.#model.seq];
    askFirst({
      heading: `Go back to log entry ${count(to)}?`,
      text: `“${name}” will predict as it did then, and go on learning from there. Nothing is lost: going back is itself an entry of the log, and log entry ${count(seq)} can be had again the same way.`,
      yes: "Go back",
      act: async () => {
        const answer = await sendJson("POST", modelPath(name, "set-back"), { to });
        if (this.#name !== name) return;
        this.#model = { ...this.#model, seq: answer.seq };
        this.#setState(null);
        write(byId("state-done"), `The model is back at the state after log entry ${count(to)}; that is log entry ${count(answer.seq)}.`);
        this.#refreshDescription(true);
        this.#refreshHistory(true);
        this.#trial.changed({ ...this.#model });
      },
    });
  }

  // Weights

  async #loadWeights() {
    this.#weightsStale = !this.#weightsVisible;
    if (this.#weightsStale) return;
    const [at, typed] = [this.#state, this.#weightLabel];
    const ask = async (name) => {
      const { classes } = at === null ? this.#model : await getJson(modelPath(name, "", { at }));
      const keys = classes.map(labelKey);
      const found = keys.includes(typed) ? [typed] : keys.filter((key) => key.includes(typed));
      const labels = found.slice(0, COLUMNS);
      const top = labels.length === 1 ? WEIGHTS_OF_ONE : WEIGHTS;
      const answers = await Promise.all(labels.map((label) => getJson(modelPath(name, "weights", { top, label, at }))));
      return { found, top, answers };
    };
    await this.#load("weights-problem", ask, ({ found, top, answers }) => {
      const columns = answers.flatMap(({ weights, intercepts }) =>
        Object.entries(weights).map(([name, pairs]) => ({ name, pairs, intercept: intercepts?.[name] })));
      showList(byId("weights"), columns, {
        key: ({ name }) => name,
        make: ({ name }) => element("div", {}, element("h3", {}, labelText(name)), element("ul", { class: "bars", "aria-label": `Weights of ${name}` })),
        update(column, { pairs, intercept }) {
          const bars = pairs.map(([feature, weight]) => [String(feature), weight]);
          if (intercept) bars.push(["(intercept)", intercept, "constant"]);
          showBars(column.lastElementChild, bars, { twoSided: true });
        },
      });
      write(byId("weights-at"), at === null ? "" : `As they were after log entry ${count(at)}.`);
      write(byId("weights-more"), this.#describeWeights(columns, found.length, top));
    });
  }

  #describeWeights(columns, labels, top) {
    if (this.#weightLabel !== "" && labels === 0) return "No label has this in its name.";
    if (!columns.some(({ pairs }) => pairs.length)) return "No weight yet.";
    const { features } = this.#model;
    const parts = [];
    if (features > top) parts.push(`The ${top} largest of ${counted(features, "feature")}.`);
    if (columns.length < labels) parts.push(`${columns.length} of ${counted(labels, "label")}; type a label to see its weights.`);
    return parts.join(" ");
  }

  // Files, and the end

  async #download(what, ending) {
    const name = this.#name;
    const button = byId(`download-${what}`);
    const status = byId("download-status");
    showProblem(byId("model-problem"), null);
    button.disabled = true;
    write(status, "Downloading …");
    try {
      await download(modelPath(name, what), `${name}${ending}`);
      write(status, `Saved as ${name}${ending}.`);
    } catch (problem) {
      write(status, "");
      if (this.#name === name) showProblem(byId("model-problem"), problem);
    } finally {
      button.disabled = false;
    }
  }

  #askToDelete() {
    const name = this.#name;
    askFirst({
      heading: `Delete “${name}”?`,
      text: `The model, its log and what it learned from ${counted(this.#model.seen, "example")} will be gone for good. Download the log first if you may want it again.`,
      yes: "Delete",
      danger: true,
      act: async () => {
        await send("DELETE", modelPath(name));
        this.deleted(name);
      },
    });
  }
}

const abridgeLabels = (labels) =>
  labels.length ? `${labels.slice(0, 12).map(labelText).join(", ")}${labels.length > 12 ? ` and ${count(labels.length - 12)} more` : ""}` : "none yet";
