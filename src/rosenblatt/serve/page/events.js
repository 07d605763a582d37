// What happens to the models, as it happens: server-sent events read from a fetch, because an EventSource cannot send a token.

import { send } from "./server.js";

const SILENCE = 45_000; // milliseconds; the server writes at least every 15 seconds
const LONGEST_WAIT = 30_000;

/** Yield {type, data} for each event of an answer, as the bytes come. `heard` is called for every piece, comments included. */
async function* eventsOf(answer, heard) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let type = "message";
  let data = [];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + value).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (data.length) yield { type, data: JSON.parse(data.join("\n")) };
        type = "message";
        data = [];
      } else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
      else if (line.startsWith("event:")) type = line.slice(6).trim();
    }
  }
}

/**
 * Keeps one stream of events open while the page is visible, and opens it again when it breaks: after a second, then two, four,
 * at most thirty. A hidden page holds no connection, since a browser allows only six to one server for all its tabs.
 */
export class EventStream {
  #abort = null;
  #timer = null;
  #wait = 1000;
  #wanted = false;

  /** `opened()` loads what there is, before the first event; `event({type, data})`; `state(name, milliseconds until the next try, problem)`. */
  constructor({ opened, event, state }) {
    Object.assign(this, { opened, event, state });
    document.addEventListener("visibilitychange", () => {
      if (!this.#wanted) return;
      if (document.hidden) this.#close();
      else this.start();
    });
  }

  /** Connect now. */
  start() {
    this.#close();
    this.#wanted = true;
    if (!document.hidden) this.#run();
  }

  /** Stay disconnected until `start`. */
  stop() {
    this.#wanted = false;
    this.#close();
  }

  #close() {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#abort = null;
  }

  async #run() {
    const abort = new AbortController();
    this.#abort = abort;
    this.state("connecting", 0, null);
    let watchdog = null;
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), SILENCE);
    };
    let problem = null;
    try {
      heard();
      const answer = await send("GET", "events", { accept: "text/event-stream", signal: abort.signal });
      await this.opened();
      if (this.#abort !== abort) return;
      this.state("live", 0, null);
      this.#wait = 1000;
      for await (const event of eventsOf(answer, heard)) {
        if (this.#abort !== abort) return;
        this.event(event);
      }
    } catch (error) {
      problem = error;
    } finally {
      clearTimeout(watchdog);
      abort.abort();
    }
    if (this.#abort !== abort) return; // closed on purpose, or replaced by another
    this.#abort = null;
    if (problem?.status === 401) { // the page asks for a token, then starts again
      this.state("token", 0, null);
      return;
    }
    if (problem?.status) await this.opened().catch(() => {}); // too many streams, say: what can be asked for is still there
    if (this.#abort !== null) return; // started again meanwhile
    const wait = this.#wait * (0.75 + 0.5 * Math.random());
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
    this.state("lost", wait, problem);
    this.#timer = setTimeout(() => this.start(), wait);
  }
}
