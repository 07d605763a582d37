// Elements of the page, and numbers in words. Data enters the page as text only: nothing here reads HTML.

export const byId = (id) => document.getElementById(id);

const svgNamespace = byId("chart").namespaceURI;

/** Return a new element with attributes (those that are null or false are left out) and children (text or elements). */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for a part of a drawing. */
export function shape(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), attributes, children);
}

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Set the text of an element, if it is another one: a live region speaks only when something changed. */
export function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/**
 * Make the children of `parent` those of `items`, one for each key, in this order. Elements that are there already stay, with
 * the keyboard's focus where it was; `update` writes what changed into them.
 */
export function showList(parent, items, { key, make, update }) {
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = before.get(name);
    before.delete(name);
    if (!child) {
      child = make(item);
      child.dataset.key = name;
    }
    update(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of before.values()) child.remove();
}

/** Show a problem near what caused it, in the words of the server; null hides it. */
export function showProblem(place, problem) {
  place.hidden = problem === null;
  write(place, problem === null ? "" : problem.sentence ?? String(problem.message ?? problem));
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const count = (number) => grouped.format(number);

export const compact = (number) => (Math.abs(number) < 100_000 ? grouped.format(number) : short.format(number));

/** "1 example", "2,000 examples". */
export const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Return a share of a whole as a percentage with as many digits as matter. */
export function share(part, whole) {
  if (!whole) return "–";
  return percent(part / whole);
}

export function percent(fraction) {
  const hundredths = 100 * fraction;
  if (hundredths > 0 && hundredths < 0.005) return "< 0.01 %";
  if (hundredths < 100 && hundredths >= 99.95) return "> 99.9 %";
  return `${hundredths.toFixed(hundredths === 0 || hundredths === 100 ? 0 : hundredths < 1 ? 2 : 1)} %`;
}

/** Return a weight or a score with four significant digits and its sign. */
export function signed(number) {
  const size = Math.abs(number);
  const digits = size === 0 ? "0" : size >= 1e6 || size < 1e-4 ? size.toExponential(2) : String(Number(size.toPrecision(4)));
  return size === 0 ? digits : `${number < 0 ? "−" : "+"}${digits}`;
}

export function bytes(number) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (number >= 1024 && unit < units.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? count(number) : number.toFixed(1)} ${units[unit]}`;
}

export const time = (value) => moment.format(new Date(value));

/** Return a text cut to a length. */
export const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** Return a label the way the server writes it as a key: text as it is, numbers and truth values as JSON. */
export const labelKey = (label) => (typeof label === "string" ? label : JSON.stringify(label));

/** A label as people read it; an empty one must be seen too. */
export function labelText(label) {
  const text = labelKey(label);
  return text.trim() === "" ? `“${text}”` : cut(text, 80);
}

/** Bars to the right (for) and to the left (against) of a middle line, as long as the numbers are large. */
export function showBars(parent, pairs, { twoSided, key = ([name]) => name } = {}) {
  const largest = Math.max(...pairs.map(([, number]) => Math.abs(number)), 1e-300);
  parent.classList.toggle("two-sided", twoSided);
  showList(parent, pairs, {
    key,
    make: () =>
      element("li", {},
        element("span", { class: "name" }),
        element("span", { class: "track", "aria-hidden": "true" }, element("span", { class: "bar" })),
        element("span", { class: "number" })),
    update(row, [name, number, note = ""]) {
      const [label, track, value] = row.children;
      write(label, cut(name, 80));
      label.title = name.length > 24 ? cut(name, 400) : "";
      write(value, signed(number));
      row.className = `${number < 0 ? "against" : "for"} ${note}`.trim();
      track.firstElementChild.style.setProperty("--length", `${(100 * Math.abs(number)) / largest}%`);
    },
  });
}
