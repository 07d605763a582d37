// The plane of the rows: their places, the two sides of a line, the line with its normal, and the row that an update is about.

class Plane extends Drawing {
  /** Lay out a view that shows these two ranges, and draw its axes. */
  lay(x, y, names) {
    this.resize();
    const inset = { left: 3.2 * em, right: 0.6 * em, top: 1.4 * em, bottom: 2.4 * em };
    const [wide, high] = [this.width - inset.left - inset.right, this.height - inset.top - inset.bottom];
    const [xScale, yScale] = [wide / (x[1] - x[0]), high / (y[1] - y[0])];
    if (Math.max(xScale / yScale, yScale / xScale) < 4) { // right angles stay right, unless that would flatten the picture
      const scale = Math.min(xScale, yScale);
      const around = ([low, high], size) => [(low + high) / 2 - size / 2, (low + high) / 2 + size / 2];
      [x, y] = [around(x, wide / scale), around(y, high / scale)];
    }
    this.x = x; // [from, to] of the view
    this.y = y;
    this.place = ([a, b]) => [
      inset.left + ((a - x[0]) / (x[1] - x[0])) * wide, inset.top + ((y[1] - b) / (y[1] - y[0])) * high,
    ];
    this.pointAt = (left, top) => [
      x[0] + ((left - inset.left) / wide) * (x[1] - x[0]), y[1] - ((top - inset.top) / high) * (y[1] - y[0]),
    ];
    drawAxes(this, { x, y }, (a, b) => this.place([a, b]), names);
  }

  /** Add rows to the picture that stays. */
  addRows(xs, ys, signs) {
    const context = this.still.getContext("2d");
    const size = Math.max(2, (xs.length > 2000 ? 0.16 : xs.length > 200 ? 0.26 : 0.4) * em);
    for (let i = 0; i < xs.length; i++) drawRow(context, this.place([xs[i], ys[i]]), signs[i], size);
  }

  /** The part of the view where side·(a·x + b·y + c) ≥ 0: its corners, and the two ends of the line itself. */
  halfPlane([a, b, c], side) {
    const corners = [[this.x[0], this.y[0]], [this.x[1], this.y[0]], [this.x[1], this.y[1]], [this.x[0], this.y[1]]];
    const shape = [];
    const ends = [];
    corners.forEach((corner, i) => {
      const next = corners[(i + 1) % 4];
      const [here, there] = [corner, next].map(([x, y]) => side * (a * x + b * y + c));
      if (here >= 0) shape.push(corner);
      if (here >= 0 !== there >= 0) {
        const part = here / (here - there);
        ends.push(corner.map((value, axis) => value + part * (next[axis] - value)));
        shape.push(ends.at(-1));
      }
    });
    return { shape, ends };
  }

  /** Tint each side of a line in the colour of its class. */
  shade(line) {
    const { context } = this;
    for (const side of [1, -1]) {
      context.fillStyle = side > 0 ? colours.positive : colours.negative;
      context.globalAlpha = 0.12;
      context.beginPath();
      for (const point of this.halfPlane(line, side).shape) context.lineTo(...this.place(point));
      context.fill();
      context.globalAlpha = 1;
    }
  }

  drawLineBefore(line) {
    stroke(this.context, this.halfPlane(line, 1).ends.map(this.place), colours.soft, 0.12 * em, [0.5 * em, 0.4 * em]);
  }

  /** Draw a line, and w on it. */
  drawLine(line) {
    const { ends } = this.halfPlane(line, 1);
    stroke(this.context, ends.map(this.place), colours.ink, 0.18 * em);
    if (ends.length !== 2) return;
    const [a, b] = line;
    const foot = [(ends[0][0] + ends[1][0]) / 2, (ends[0][1] + ends[1][1]) / 2];
    const length = (0.13 * Math.min(this.x[1] - this.x[0], this.y[1] - this.y[0])) / Math.hypot(a, b);
    const tip = this.place([foot[0] + length * a, foot[1] + length * b]);
    arrow(this.context, this.place(foot), tip, colours.ink, 0.18 * em);
    write(this, "w", tip[0] + 0.8 * em, tip[1], colours.ink);
  }

  /** Draw a ring around the row that an update is about. */
  drawWrongRow(point, sign, text) {
    const { context } = this;
    const [x, y] = this.place(point);
    context.strokeStyle = colours.wrong;
    context.lineWidth = 0.22 * em;
    context.beginPath();
    context.arc(x, y, 0.85 * em, 0, 2 * Math.PI);
    context.stroke();
    drawRow(context, [x, y], sign, 0.45 * em);
    write(this, text, x, y - 1.5 * em, colours.ink);
  }
}

/** A disc for the positive class, a square for the negative one. */
function drawRow(context, [x, y], sign, size) {
  context.fillStyle = sign > 0 ? colours.positive : colours.negative;
  context.strokeStyle = colours.paper;
  context.lineWidth = 1;
  context.beginPath();
  if (sign > 0) context.arc(x, y, size, 0, 2 * Math.PI);
  else context.rect(x - 0.88 * size, y - 0.88 * size, 1.76 * size, 1.76 * size);
  context.fill();
  if (size > 4) context.stroke();
}

/** A range with room on both sides. */
function withRoom([low, high]) {
  const room = 0.12 * (high - low) || 1;
  return [low - room, high + room];
}
