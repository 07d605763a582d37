// The page: a list of models, one of them shown, and a connection that keeps both up to date.

import { askForModels, askForTokens } from "./dialogs.js";
import { byId, count, element, share, showList, write } from "./elements.js";
import { EventStream } from "./events.js";
import { ModelView } from "./model.js";
import { getJson } from "./server.js";

const LISTED = 200;

const models = new Map(); // from name to what is known of the model
let listed = false; // whether the server has told which models there are

// The list

function showModels() {
  const typed = byId("models-filter").value.trim().toLowerCase();
  const names = [...models.keys()].sort();
  const found = names.filter((name) => name.toLowerCase().includes(typed));
  byId("models-filter").hidden = names.length <= 10;
  showList(byId("models-list"), found.slice(0, LISTED).map((name) => models.get(name)), {
    key: ({ name }) => name,
    make: ({ name }) =>
      element("li", {},
        element("a", { href: `#/${encodeURIComponent(name)}` },
          element("span", { class: "name" }, name), element("span", { class: "note" }))),
    update(item, { name, seen, wrong, recent }) {
      const link = item.firstElementChild;
      const lately = recent?.seen ? `${share(recent.wrong, recent.seen)} wrong lately` : seen ? `${share(wrong, seen)} wrong` : null;
      write(link.lastElementChild, [`${count(seen)} seen`, lately].filter(Boolean).join(" · "));
      if (name === view.name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    },
  });
  const more = byId("models-more");
  more.hidden = found.length <= LISTED;
  write(more, `${count(found.length - LISTED)} more; type a part of the name.`);
}

// Which model is shown: the one that the address names, #/name, or the first

const chosenName = () => {
  try {
    return decodeURIComponent(location.hash.replace(/^#\/?/, ""));
  } catch {
    return "";
  }
};

const view = new ModelView({
  recent: (name) => models.get(name)?.recent ?? null,
  missing: (name) => leave(name, `There is no model “${name}”`),
  failed(name, problem) {
    write(byId("missing-heading"), `“${name}” cannot be shown now`);
    write(byId("missing-text"), problem.sentence);
    byId("missing").hidden = false;
  },
  deleted: (name) => leave(name, `“${name}” was deleted`),
});

function leave(name, heading) {
  models.delete(name);
  showModels();
  if (view.name !== name) return;
  if (chosenName() === name) history.replaceState(null, "", "#/");
  view.open(null);
  write(byId("missing-heading"), heading);
  write(byId("missing-text"), "Choose one from the list, or make a new one.");
  byId("missing").hidden = false;
}

function route() {
  const name = chosenName() || [...models.keys()].sort()[0] || "";
  byId("welcome").hidden = name !== "" || !listed || !byId("missing").hidden;
  document.title = name ? `${name} – rosenblatt` : "rosenblatt";
  if (name !== "") byId("missing").hidden = true;
  if (name === (view.name ?? "") && (name === "" || view.shown)) return;
  view.open(name === "" ? null : name);
  showModels();
}

window.addEventListener("hashchange", route);
byId("models-filter").addEventListener("input", showModels);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("content").focus();
});

// The connection

const WORDS = {
  connecting: "Connecting …",
  live: "Live",
  lost: "Connection lost. Trying again …",
  token: "A token is needed.",
};

const stream = new EventStream({
  async opened() {
    const { models: descriptions } = await getJson("models");
    const recent = new Map([...models].map(([name, model]) => [name, model.recent]));
    models.clear();
    for (const description of descriptions) models.set(description.name, { ...description, recent: recent.get(description.name) });
    listed = true;
    if (models.has(view.name)) view.update(models.get(view.name));
    showModels();
    route();
  },
  event({ type, data }) {
    if (type === "deleted") {
      models.delete(data.name);
      if (view.name === data.name) view.deleted(data.name);
    } else if (type === "model") {
      models.set(data.name, { ...models.get(data.name), ...data });
      view.update(data);
    }
    showModelsSoon();
    if (!view.name && byId("missing").hidden) route();
  },
  state(name, wait, problem) {
    const place = byId("connection");
    place.dataset.state = name;
    byId("connection-retry").hidden = name !== "lost" && name !== "token";
    write(byId("connection-text"), problem?.status ? `${WORDS[name]} ${problem.sentence}` : WORDS[name]);
  },
});

let drawing = 0;

/** Events may come in hundreds: the list is written once for each picture that the screen shows. */
function showModelsSoon() {
  cancelAnimationFrame(drawing);
  drawing = requestAnimationFrame(showModels);
}

byId("connection-retry").addEventListener("click", () => stream.start());

askForTokens(() => {
  const name = view.name;
  view.open(null);
  stream.start();
  if (name) view.open(name);
});

askForModels((name) => {
  if (chosenName() === name) route();
  else location.hash = `#/${encodeURIComponent(name)}`;
});

const command = `curl -X PUT ${new URL("models/first", document.baseURI)} \\
  -H 'Content-Type: application/json' -d '{"learner": "OnlinePerceptron"}'`;
write(byId("welcome-command"), command);
stream.start();
