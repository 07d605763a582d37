// One example: what the model says, what it said in an earlier state, why, and what it should have said.

import { byId, count, counted, cut, element, labelKey, labelText, showBars, showList, showProblem, signed, write } from "./elements.js";
import { readExample, readLabel, typeExample } from "./examples.js";
import { paced, settled } from "./refresh.js";
import { modelPath, sendJson } from "./server.js";

const SCORES = 10;
const FEATURES = 20;
const BUTTONS = 8;
const SUGGESTIONS = 200;

export class Trial {
  #model = null; // {name, classes, seq}
  #example = null; // what the result on the page is about
  #predicted = null; // its label; that of a regressor is a number, and no class
  #id = null; // of the stored prediction, by which its label is taught
  #state = null; // an earlier log entry to compare with
  #refresh = paced(1000, () => this.#predictNow(false));
  #compare = settled(250, () => this.#predictThen());

  constructor() {
    byId("try-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#predict();
    });
    byId("try-example").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.#predict();
      }
    });
    for (const [field, kind] of [["try-example", "input"], ["try-form-of", "change"]]) {
      byId(field).addEventListener(kind, () => this.#say());
    }
    byId("teach-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const typed = byId("teach-new").value.trim();
      if (typed === "") showProblem(byId("teach-problem"), new Error("Type the label first."));
      else this.#teach(readLabel(typed, this.#predicted === null ? this.#model.classes : [...this.#model.classes, this.#predicted]));
    });
    byId("teach-new").addEventListener("input", () => this.#suggest());
  }

  /** Begin with a model, or with none. */
  open(model) {
    this.#model = model;
    this.#example = null;
    this.#state = null;
    byId("result").hidden = true;
    byId("then").hidden = true;
    for (const place of ["try-problem", "teach-problem", "then-problem"]) showProblem(byId(place), null);
    write(byId("teach-done"), "");
    write(byId("try-announcement"), "");
  }

  /** The model learned something: what stands on the page as “now” is asked again, without a new id. */
  changed(model) {
    const learned = this.#model.seq !== model.seq;
    this.#model = model;
    if (this.#example && learned) this.#refresh();
  }

  /** Compare with the state after this log entry; null compares with none. */
  setState(seq) {
    this.#state = seq;
    this.#compare();
  }

  /** Put an example into the box and predict it. */
  try(example) {
    const { typed, form } = typeExample(example);
    byId("try-example").value = typed;
    byId("try-form-of").value = form;
    byId("try-example").scrollIntoView({ block: "center" });
    byId("try-example").focus({ preventScroll: true });
    this.#predict();
  }

  #say() {
    const typed = byId("try-example").value;
    let words = "";
    if (typed.trim() !== "") {
      try {
        ({ words } = readExample(typed, byId("try-form-of").value));
      } catch (problem) {
        words = problem.message;
      }
    }
    write(byId("try-reading"), words);
  }

  async #predict() {
    this.#say();
    showProblem(byId("try-problem"), null);
    showProblem(byId("teach-problem"), null);
    write(byId("teach-done"), "");
    try {
      this.#example = readExample(byId("try-example").value, byId("try-form-of").value).example;
    } catch (problem) {
      this.#example = null;
      byId("result").hidden = true;
      showProblem(byId("try-problem"), problem);
      return;
    }
    this.#id = null;
    this.#compare();
    await this.#predictNow(true);
  }

  async #ask(store, at) {
    const body = { examples: [this.#example], top: SCORES, explain: FEATURES, store };
    const { predictions, seq } = await sendJson("POST", modelPath(this.#model.name, "predict", { at }), body);
    return { ...predictions[0], seq };
  }

  async #predictNow(store) {
    const { name } = this.#model ?? {};
    const example = this.#example;
    if (!example) return;
    let prediction;
    try {
      prediction = await this.#ask(store, null);
    } catch (problem) {
      if (this.#example === example && store) {
        byId("result").hidden = true;
        showProblem(byId("try-problem"), problem);
      }
      return;
    }
    if (this.#example !== example || this.#model?.name !== name) return;
    if (store) this.#id = prediction.id ?? null;
    this.#predicted = prediction.label;
    byId("result").hidden = false;
    write(byId("now-heading"), `Now (log entry ${count(prediction.seq)})`);
    this.#show("now", prediction);
    this.#showTeaching(prediction);
    const labels = this.#model.classes.length;
    const shown = Object.keys(prediction.scores ?? {}).length;
    write(byId("now-more"), labels > shown && shown ? `The ${counted(shown, "highest score")}; ${counted(labels - shown, "more label")}.` : "");
    write(byId("now-why-more"), restOf(prediction));
    if (store) write(byId("try-announcement"), describe(prediction));
  }

  async #predictThen() {
    const [example, state] = [this.#example, this.#state];
    byId("then").hidden = state === null;
    if (!example || state === null) return;
    write(byId("then-heading"), `Then (log entry ${count(state)})`);
    try {
      const prediction = await this.#ask(false, state);
      if (this.#example !== example || this.#state !== state) return;
      showProblem(byId("then-problem"), null);
      this.#show("then", prediction);
    } catch (problem) {
      if (this.#state !== state) return;
      for (const part of ["scores", "why"]) byId(`then-${part}`).replaceChildren();
      write(byId("then-label"), "");
      byId("then-why-heading").hidden = true;
      showProblem(byId("then-problem"), problem);
    }
  }

  /** Write a prediction into the column "now" or "then". */
  #show(column, prediction) {
    const scores = ranked(prediction);
    const best = prediction.label === null ? null : labelKey(prediction.label);
    write(byId(`${column}-label`), best === null ? "No label yet" : labelText(prediction.label));
    showBars(byId(`${column}-scores`), scores.map(([label, score]) => [label, score, label === best ? "best" : ""]), { twoSided: true });
    const reasons = (prediction.contributions ?? []).map(([feature, number]) => [String(feature), number]);
    if (prediction.intercept) reasons.push(["(intercept)", prediction.intercept, "constant"]);
    reasons.sort(([, one], [, other]) => Math.abs(other) - Math.abs(one));
    byId(`${column}-why-heading`).hidden = reasons.length === 0;
    write(byId(`${column}-why-heading`), best === null ? "Why" : `What spoke for and against “${cut(best, 40)}”`);
    showBars(byId(`${column}-why`), reasons, { twoSided: true });
  }

  #showTeaching(prediction) {
    const { classes } = this.#model;
    const known = new Map(classes.map((label) => [labelKey(label), label]));
    const labels = classes.length <= BUTTONS
      ? classes
      : ranked(prediction).filter(([key]) => known.has(key)).slice(0, BUTTONS).map(([key]) => known.get(key));
    const best = prediction.label === null ? null : labelKey(prediction.label);
    showList(byId("teach-labels"), labels, {
      key: labelKey,
      make: (label) => {
        const button = element("button", { type: "button" });
        button.addEventListener("click", () => this.#teach(label));
        return button;
      },
      update(button, label) {
        write(button, labelText(label));
        const right = labelKey(label) === best;
        button.title = right ? "as predicted" : "";
        button.classList.toggle("best", right);
      },
    });
    this.#suggest();
  }

  #suggest() {
    const typed = byId("teach-new").value;
    showSuggestions(byId("teach-known"), this.#model.classes, typed);
  }

  async #teach(label) {
    if (!this.#example) return;
    const { name } = this.#model;
    const example = this.#example;
    const taught = this.#id === null ? { ...example, y: label } : { id: this.#id, y: label };
    const buttons = byId("result").querySelectorAll(".teach button");
    showProblem(byId("teach-problem"), null);
    for (const button of buttons) button.disabled = true;
    const focused = document.activeElement;
    try {
      const answer = await sendJson("POST", modelPath(name, "learn"), { examples: [taught] });
      if (this.#model?.name !== name) return;
      if (answer.refused?.length) throw new Error(answer.refused[0].detail);
      byId("teach-new").value = "";
      if (!this.#model.classes.some((known) => labelKey(known) === labelKey(label))) {
        this.#model = { ...this.#model, classes: [...this.#model.classes, label] };
      }
      const before = this.#predicted === null ? "nothing" : `“${labelText(this.#predicted)}”`;
      await this.#predictNow(true);
      write(byId("teach-done"), `Learned “${labelText(label)}” as log entry ${count(answer.seq)}; it had predicted ${before}.`);
    } catch (problem) {
      if (this.#model?.name === name) showProblem(byId("teach-problem"), problem);
    } finally {
      for (const button of buttons) button.disabled = false;
      if (focused?.isConnected) focused.focus({ preventScroll: true });
    }
  }
}

/** Return the scores, highest first: an object of JavaScript puts keys that look like numbers in another order. */
const ranked = ({ scores }) => Object.entries(scores ?? {}).sort(([, one], [, other]) => other - one);

function describe(prediction) {
  if (prediction.label === null) return "The model has no label yet.";
  const score = prediction.scores?.[labelKey(prediction.label)];
  return `Predicted: ${labelText(prediction.label)}${score === undefined ? "" : `, with a score of ${signed(score)}`}.`;
}

/** Say what the features that are not shown add to the score. */
function restOf(prediction) {
  if ((prediction.contributions ?? []).length < FEATURES) return "";
  const score = prediction.scores?.[labelKey(prediction.label)];
  if (score === undefined) return "";
  const shown = prediction.contributions.reduce((sum, [, number]) => sum + number, prediction.intercept ?? 0);
  return `The ${FEATURES} largest; all other features together: ${signed(score - shown)}.`;
}

/** Offer known labels that contain what was typed, so many that a browser can show them. */
export function showSuggestions(list, labels, typed) {
  const found = [];
  for (const label of labels) {
    const key = labelKey(label);
    if (key.includes(typed) && found.push(key) === SUGGESTIONS) break;
  }
  showList(list, found, { key: (key) => key, make: (key) => element("option", { value: key }), update: () => {} });
}
