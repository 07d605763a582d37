// Requests to the server that this page came from. A token lives in this tab's session storage and in one header, nowhere else.

const TOKEN = "rosenblatt-token";

export const token = {
  get: () => sessionStorage.getItem(TOKEN),
  set: (text) => sessionStorage.setItem(TOKEN, text),
  forget: () => sessionStorage.removeItem(TOKEN),
};

/** Tells the page that a request was refused for want of a token: listen to "refused". */
export const access = new EventTarget();

/** What the server refused (problem details, RFC 9457), or that it did not answer (status 0). */
export class Problem extends Error {
  constructor(status, details) {
    super(details.detail || details.title || `The server answered with status ${status}.`);
    this.status = status;
    this.details = details;
  }

  /** The problem and what to do about it. */
  get sentence() {
    const text = ending(this.message);
    const hint = this.details.hint;
    return hint ? `${text} ${ending(hint[0].toUpperCase() + hint.slice(1))}` : text;
  }
}

const ending = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

/** Return the answer to a request, or throw a Problem; an aborted request throws AbortError. */
export async function send(method, path, { body = null, type = "application/json", accept = "application/json", signal = null } = {}) {
  const headers = { Accept: accept };
  const secret = token.get();
  if (secret) headers.Authorization = `Bearer ${secret}`;
  if (body !== null) headers["Content-Type"] = type;
  const options = { method, headers, body, signal, cache: "no-store", credentials: "same-origin", redirect: "error" };
  let answer;
  try {
    answer = await fetch(new URL(path, document.baseURI), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { detail: "The server does not answer. Is it still running, and is the network there?" });
  }
  if (answer.ok) return answer;
  const problem = new Problem(answer.status, await detailsOf(answer));
  if (answer.status === 401) access.dispatchEvent(new CustomEvent("refused", { detail: { problem, used: secret } }));
  throw problem;
}

async function detailsOf(answer) {
  try {
    const details = await answer.json();
    return details !== null && typeof details === "object" ? details : {};
  } catch {
    return {};
  }
}

export async function getJson(path, options) {
  return (await send("GET", path, options)).json();
}

export async function sendJson(method, path, body, options) {
  return (await send(method, path, { ...options, body: JSON.stringify(body) })).json();
}

/** Return the path of a model, or of something of it, with those query parameters that are not null. */
export function modelPath(name, rest = "", query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const text = given.length ? `?${new URLSearchParams(given)}` : "";
  return `models/${encodeURIComponent(name)}${rest && `/${rest}`}${text}`;
}

/** Save what a path answers as a file of this name. */
export async function download(path, name) {
  const answer = await send("GET", path, { accept: "*/*" });
  const address = URL.createObjectURL(await answer.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
