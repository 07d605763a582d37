// The step that is shown, how it is chosen, and how a run is played: the slider, the buttons and the keys of a page. The page
// says how it draws a step (`draw`), and what its address becomes (`address`).

const SPEEDS = [1, 2, 5, 15, 60, 250, 1000, 4000];

class Player {
  constructor(draw, address) {
    this.draw = draw;
    this.address = address;
    this.last = 0;
    this.step = -1;
    this.redraw = 0;
    this.playing = false;
    this.clock = 0; // when the last frame was
    this.exact = 0; // the step, with its fraction
    for (const speed of SPEEDS) byId("speed").append(new Option(`${whole.format(speed)} a second`, speed));
    const keys = {
      ArrowRight: () => this.goTo(this.step + 1),
      ArrowUp: () => this.goTo(this.step + 1),
      ArrowLeft: () => this.goTo(this.step - 1),
      ArrowDown: () => this.goTo(this.step - 1),
      PageUp: () => this.goTo(this.step + Math.max(1, this.last / 20)),
      PageDown: () => this.goTo(this.step - Math.max(1, this.last / 20)),
      Home: () => this.goTo(0),
      End: () => this.goTo(this.last),
      " ": () => this.setPlaying(!this.playing),
    };
    document.addEventListener("keydown", (event) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("select, input:not([type=range], [type=checkbox])")) return; // it has uses for keys
      if (event.key === " " && event.target.closest("button, summary, [type=checkbox]")) return; // it presses the button
      if (!(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });
    byId("speed").addEventListener("change", () => { this.speedChosen = true; });
    byId("slider").addEventListener("input", () => this.goTo(Number(byId("slider").value)));
    byId("play").addEventListener("click", () => this.setPlaying(!this.playing));
    byId("back").addEventListener("click", () => this.goTo(this.step - 1));
    byId("next").addEventListener("click", () => this.goTo(this.step + 1));
  }

  /** There are so many steps from now on; unless a speed was chosen, it is one that plays them in half a minute. */
  setLast(last) {
    this.last = last;
    byId("slider").max = last;
    byId("play").disabled = last === 0;
    if (!this.speedChosen) byId("speed").value = SPEEDS.find((speed) => last / speed <= 30) ?? SPEEDS.at(-1);
  }

  /** Draw the step again, with the next frame. */
  refresh() {
    this.redraw ||= requestAnimationFrame(() => {
      this.redraw = 0;
      this.draw(this.step);
      byId("position").textContent = `${whole.format(this.step)} of ${whole.format(this.last)}`;
      byId("back").disabled = this.step === 0;
      byId("next").disabled = this.step === this.last;
      byId("slider").value = this.step;
      byId("slider").setAttribute("aria-valuetext", count(this.step, "update"));
    });
  }

  show(k) {
    const to = Math.max(0, Math.min(this.last, Math.round(k)));
    if (to === this.step) return;
    this.step = to;
    this.refresh();
    this.noteAddress();
  }

  noteAddress() {
    clearTimeout(this.addressTimer); // browsers refuse more than a few changes of the address a second
    this.addressTimer = setTimeout(() => history.replaceState(null, "", this.address()), 200);
  }

  setPlaying(on) {
    if (on === this.playing || (on && this.last === 0)) return;
    this.playing = on;
    byId("play").textContent = on ? "Pause" : "Play";
    for (const text of document.querySelectorAll("[aria-live]")) text.ariaLive = on ? "off" : "polite"; // none keeps up with a film
    if (!on) return;
    if (this.step === this.last) this.show(0);
    this.exact = this.step;
    this.clock = performance.now();
    requestAnimationFrame((now) => this.playFrame(now));
  }

  playFrame(now) {
    if (!this.playing) return;
    this.exact += (Math.max(0, now - this.clock) / 1000) * Number(byId("speed").value);
    this.clock = now;
    this.show(Math.floor(Math.min(this.exact, this.last)));
    if (this.step === this.last) this.setPlaying(false);
    else requestAnimationFrame((later) => this.playFrame(later));
  }

  goTo(k) {
    this.setPlaying(false);
    this.show(k);
  }
}
