// The two walls of the proof: ⟨w, u⟩ stays above a line, ‖w‖ below a root, and there is room between them until they meet.
// A run has: progress, norm (of each step), lower and upper (at step 0, and what each update adds; of the upper one the
// squares), gamma, bound, formulas.

class Walls extends Drawing {
  /** Draw the chart of a run, on to where the walls meet if `far`. */
  lay(run, far) {
    this.resize();
    this.run = run;
    this.separable = run.gamma > 0;
    const { separable } = this;
    const last = run.norm.length - 1;
    const farthest = Math.max(1, last, far ? 1.06 * run.bound : 0); // the last k of the chart
    this.farthest = farthest;
    const inset = { left: 3.6 * em, right: 1.6 * em, top: 1.4 * em, bottom: 2.4 * em };
    const low = Math.min(0, ...(separable ? [extent(run.progress)[0]] : []));
    const high = 1.05 * Math.max(this.upper(farthest), separable ? this.lower(farthest) : 0, extent(run.norm)[1]);
    const [wide, tall] = [this.width - inset.left - inset.right, this.height - inset.top - inset.bottom];
    const place = (k, value) => [inset.left + (k / farthest) * wide, inset.top + ((high - value) / (high - low)) * tall];
    this.place = place;
    const names = ["updates k", "length"];
    drawAxes(this, { x: [0, farthest], y: [low, high] }, place, names);
    const context = this.curves.getContext("2d");
    const ks = Array.from({ length: 201 }, (_, i) => (farthest * i) / 200);
    const upper = ks.map((k) => place(k, this.upper(k)));
    const meet = Math.min(farthest, run.bound ?? farthest);
    context.fillStyle = colours.room;
    context.globalAlpha = 0.2;
    context.beginPath();
    for (let i = 0; i <= 100; i++) context.lineTo(...place((meet * i) / 100, this.upper((meet * i) / 100)));
    context.lineTo(...place(meet, separable ? this.lower(meet) : 0));
    context.lineTo(...place(0, separable ? this.lower(0) : 0));
    context.fill();
    context.globalAlpha = 1;
    stroke(context, upper, colours.upper, 0.2 * em);
    if (separable) {
      stroke(context, ks.map((k) => place(k, this.lower(k))), colours.lower, 0.2 * em);
      stroke(context, run.progress.map((value, k) => place(k, value)), colours.lower, 0.13 * em, [0.4 * em, 0.3 * em]);
    }
    stroke(context, run.norm.map((value, k) => place(k, value)), colours.ink, 0.14 * em);
  }

  lower(k) {
    return this.run.lower[0] + k * this.run.lower[1];
  }

  upper(k) {
    return Math.sqrt(this.run.upper[0] + k * this.run.upper[1]);
  }

  /** Show the run after k updates. */
  draw(k) {
    const { context, run, separable, farthest, place } = this;
    this.clear();
    this.paste(this.still);
    this.paste(this.curves, 0.3);
    const [x, floor] = place(k, 0);
    this.paste(this.curves, 1, Math.min(1, x / this.width));
    const top = place(k, this.upper(k));
    const bottom = separable ? place(k, this.lower(k)) : [x, floor];
    stroke(context, [top, bottom], colours.ink, 0.1 * em, [0.2 * em, 0.3 * em]);
    const dots = [[this.upper(k), colours.upper], [run.norm[k], colours.ink]];
    if (separable) dots.unshift([this.lower(k), colours.lower], [run.progress[k], colours.lower]);
    for (const [value, colour] of dots) {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(...place(k, value), 0.32 * em, 0, 2 * Math.PI);
      context.fill();
    }
    const beside = (text, at, value, up, colour, align) => {
      const [left, middle] = place(at, value);
      write(this, text, left, middle - up * em, colour, align);
    };
    beside(run.formulas[1], 0.4 * farthest, this.upper(0.4 * farthest), 1.1, colours.upper, "right");
    const flat = this.lower(farthest) < 0.15 * this.upper(farthest);
    if (separable) beside(run.formulas[0], 0.72 * farthest, this.lower(0.72 * farthest), flat ? 1 : -1, colours.lower, "left");
    if (k > 0) beside("‖w‖", k, run.norm[k], 0.9, colours.ink, k < 0.85 * farthest ? "left" : "right");
  }
}
