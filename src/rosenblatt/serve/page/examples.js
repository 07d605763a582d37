// What somebody typed, as an example: text, named features, or numbers in order. And an example as somebody may type it.

import { counted, cut, labelKey } from "./elements.js";

const NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const partsOf = (text) => text.split(/[,;\s]+/).filter((part) => part !== "");

/**
 * Return {example, words}: what the server is sent, and how it was read. `form` is "text", "names", "numbers", or "any": then
 * braces begin named features, brackets or numbers with a comma are numbers in order, and everything else is text.
 */
export function readExample(typed, form) {
  const trimmed = typed.trim();
  if (trimmed === "") throw new Error("There is no example yet: type or paste one.");
  if (form === "any") {
    if (trimmed.startsWith("{")) form = "names";
    else if (trimmed.startsWith("[") || (/[,;]/.test(trimmed) && partsOf(trimmed).every((part) => NUMBER.test(part)))) form = "numbers";
    else form = "text";
  }
  if (form === "text") return { example: { text: typed }, words: `Read as text of ${counted(typed.length, "character")}.` };
  if (form === "names") return readNames(trimmed);
  return readNumbers(trimmed);
}

function readNames(text) {
  const x = readJson(text, "named features are written like {\"free\": 1, \"length\": 0.4}");
  if (x === null || typeof x !== "object" || Array.isArray(x)) {
    throw new Error("Named numbers are written like {\"free\": 1, \"length\": 0.4}; this is JSON, but no object.");
  }
  if (typeof x.text === "string" && x.x !== null && typeof x.x === "object" && Object.keys(x).length === 2) {
    return { example: x, words: `Read as text of ${counted(x.text.length, "character")} with ${counted(Object.keys(x.x).length, "named feature")}.` };
  }
  for (const [name, value] of Object.entries(x)) {
    if (!["number", "string", "boolean"].includes(typeof value)) {
      throw new Error(`The value of “${cut(name, 60)}” must be a number or a word; it is ${value === null ? "null" : "a list or an object"}.`);
    }
  }
  return { example: { x }, words: `Read as ${counted(Object.keys(x).length, "named feature")}.` };
}

function readNumbers(text) {
  const x = text.startsWith("[")
    ? readJson(text, "numbers in order are written like [1.5, 0, 2]")
    : partsOf(text).map((part) => (NUMBER.test(part) ? Number(part) : part));
  const other = x.findIndex((value) => typeof value !== "number");
  if (other >= 0) {
    throw new Error(`Numbers in order are written like 1.5, 0, 2; number ${other + 1} here is ${cut(JSON.stringify(x[other]), 60)}.`);
  }
  return { example: { x }, words: `Read as ${counted(x.length, "number")} in order.` };
}

function readJson(text, expected) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON (${error.message}); ${expected}.`);
  }
}

/** Return the text that, typed into the box and read as `form`, is this example. */
export function typeExample({ text, x }) {
  if (text !== undefined && x !== undefined) return { typed: JSON.stringify({ text, x }), form: "names" };
  if (text !== undefined) return { typed: text, form: "text" };
  if (Array.isArray(x)) return { typed: x.join(", "), form: "numbers" };
  return { typed: JSON.stringify(x), form: "names" };
}

/** Return an example in one line. */
export function describeExample({ text, x }) {
  if (text !== undefined) return x === undefined ? cut(text, 200) : `${cut(text, 200)} (${describeExample({ x })})`;
  if (x === undefined) return "(too long to be kept)";
  if (Array.isArray(x)) return abridge(x.map(String));
  return abridge(Object.entries(x).map(([name, value]) => (value === 1 ? cut(name, 40) : `${cut(name, 40)} = ${value}`)));
}

const abridge = (parts) => `${parts.slice(0, 12).join(", ")}${parts.length > 12 ? ` and ${parts.length - 12} more` : ""}`;

/**
 * Return what a typed label is: a known one, if it is written like that; else a number or a truth value where all known labels
 * are; else text.
 */
export function readLabel(typed, known) {
  const same = known.find((label) => labelKey(label) === typed);
  if (same !== undefined) return same;
  if (known.length && known.every((label) => typeof label === "number") && NUMBER.test(typed)) return Number(typed);
  if (known.length && known.every((label) => typeof label === "boolean") && /^(true|false)$/.test(typed)) return typed === "true";
  return typed;
}

/** Return labels that were typed all at once: whole numbers or truth values if all of them are, else text. */
export function readLabels(typed) {
  if (typed.every((label) => /^-?\d{1,15}$/.test(label))) return typed.map(Number);
  if (typed.every((label) => /^(true|false)$/.test(label))) return typed.map((label) => label === "true");
  return typed;
}
