// Questions that must be answered first: is that what you want, which token, what shall the new model be.

import { byId, showProblem } from "./elements.js";
import { readLabels } from "./examples.js";
import { access, modelPath, send, sendJson, token } from "./server.js";

// Ask before something that is hard to undo

let confirmed = null;

/** Ask; on yes, run `act`. The dialog closes when it is done, and shows the problem when it fails. */
export function askFirst({ heading, text, yes, danger = false, act }) {
  byId("confirm-heading").textContent = heading;
  byId("confirm-text").textContent = text;
  const button = byId("confirm-yes");
  button.textContent = yes;
  button.className = danger ? "danger" : "main";
  button.disabled = false;
  showProblem(byId("confirm-problem"), null);
  confirmed = act;
  byId("confirm").showModal();
}

byId("confirm-no").addEventListener("click", () => byId("confirm").close());
byId("confirm-yes").addEventListener("click", async () => {
  const button = byId("confirm-yes");
  button.disabled = true;
  try {
    await confirmed();
    byId("confirm").close();
    if (document.activeElement === document.body) byId("content").focus(); // what had opened it is gone
  } catch (problem) {
    showProblem(byId("confirm-problem"), problem);
  } finally {
    button.disabled = false;
  }
});

// A token

/** Ask for a token whenever a request is refused for want of one; then call `again`. */
export function askForTokens(again) {
  access.addEventListener("refused", ({ detail: { problem, used } }) => {
    if (used !== token.get()) return; // another one was entered meanwhile
    token.forget();
    byId("token-forget").hidden = true;
    showProblem(byId("token-problem"), used ? problem : null);
    if (!byId("token").open) byId("token").showModal();
  });
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const field = byId("token-text");
    const text = field.value.trim();
    if (!/^[\x21-\x7e]+$/.test(text)) {
      showProblem(byId("token-problem"), new Error("A token has letters, digits, - and _ only; something else is in this one."));
      return;
    }
    token.set(text);
    field.value = "";
    byId("token-forget").hidden = false;
    byId("token").close();
    again();
  });
  byId("token-forget").hidden = token.get() === null;
  byId("token-forget").addEventListener("click", () => {
    token.forget();
    byId("token-forget").hidden = true;
    again();
  });
}

// A new model

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Ask for a new model; `made(name)` is called when the server has it. */
export function askForModels(made) {
  for (const opener of ["create-open", "welcome-create"]) {
    byId(opener).addEventListener("click", () => {
      showProblem(byId("create-problem"), null);
      byId("create").showModal();
    });
  }
  byId("create-cancel").addEventListener("click", () => byId("create").close());
  for (const field of ["create-from-file", "create-from-learner", "create-learner"]) byId(field).addEventListener("change", showParts);
  showParts();
  byId("create-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = byId("create-submit");
    if (button.disabled) return;
    button.disabled = true;
    showProblem(byId("create-problem"), null);
    try {
      const name = byId("create-name").value.trim();
      if (!NAME.test(name)) {
        throw new Error(`The name must have 1 to 64 letters, digits, dots, underscores or hyphens, and begin with a letter or digit; got “${name}”.`);
      }
      if (byId("create-from-file").checked) await sendFile(name);
      else await sendJson("PUT", modelPath(name), readSettings());
      byId("create").close();
      byId("create-form").reset();
      showParts();
      made(name);
    } catch (problem) {
      showProblem(byId("create-problem"), problem);
    } finally {
      button.disabled = false;
    }
  });
}

/** Show the fields that the choices so far leave open. */
function showParts() {
  const file = byId("create-from-file").checked;
  byId("create-file-part").hidden = !file;
  byId("create-learner-part").hidden = file;
  const [learner] = byId("create-learner").selectedOptions;
  byId("create-classes-part").hidden = learner.parentElement.dataset.labels === "come";
  byId("create-hashing-note").textContent = learner.value === "OnlinePerceptron"
    ? "(optional; so many buckets, and the model does not grow with new names)"
    : "(number of buckets, for texts and named features; empty: examples are lists of numbers)";
}

async function sendFile(name) {
  const [file] = byId("create-file").files;
  if (!file) throw new Error("Choose a model file first: one that rosenblatt saved.");
  await send("PUT", modelPath(name), { body: file, type: "application/octet-stream" });
}

function readSettings() {
  const settings = { learner: byId("create-learner").value, parameters: {} };
  const parameters = byId("create-parameters").value.trim();
  if (parameters) {
    try {
      settings.parameters = JSON.parse(parameters);
    } catch (error) {
      throw new Error(`The parameters are not JSON (${error.message}); they are written like {"keep": "average"}.`);
    }
  }
  const hashing = byId("create-hashing");
  if (hashing.validity.badInput) throw new Error("Hashing must be a whole number, as 1048576, or empty.");
  if (hashing.value) settings.hashing = Number(hashing.value);
  if (byId("create-classes-part").hidden) return settings;
  const classes = byId("create-classes").value.split(",").map((label) => label.trim()).filter((label) => label !== "");
  if (classes.length) settings.classes = readLabels(classes);
  return settings;
}
