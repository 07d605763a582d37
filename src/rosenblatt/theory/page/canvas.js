"use strict";

// Numbers as text, and the means of drawing on a canvas: what every page with a plane in it begins with.

const byId = (id) => document.getElementById(id);

// Numbers as text

const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const decimals = new Intl.NumberFormat("en", { maximumFractionDigits: 3 });
const whole = new Intl.NumberFormat("en");

function numberText(value, format = short) {
  const size = Math.abs(value);
  const far = size >= 1e7 || (size < 1e-3 && size > 0);
  if (!far) return (Number.isInteger(value) ? whole : format).format(value).replace("-", "−");
  const [digits, power] = value.toExponential(2).split("e");
  return `${digits}·10${power.replace("+", "").replace(/./g, (digit) => SUPERSCRIPTS[digit])}`.replace("-", "−");
}
const SUPERSCRIPTS = { "-": "⁻", ...Array.from("⁰¹²³⁴⁵⁶⁷⁸⁹") };
const count = (value, noun) => `${whole.format(value)} ${noun}${value === 1 ? "" : "s"}`;

// Canvases: each keeps what does not change from step to step as a picture of its own

const colours = {};
let em = 16;

class Drawing {
  constructor(id) {
    this.canvas = byId(id);
    this.context = this.canvas.getContext("2d");
    this.still = document.createElement("canvas");
    this.curves = document.createElement("canvas"); // pale where the run has not come yet
  }

  resize() {
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    for (const canvas of [this.canvas, this.still, this.curves]) {
      canvas.width = Math.round(this.width * scale);
      canvas.height = Math.round(this.height * scale);
      const context = canvas.getContext("2d");
      context.setTransform(scale, 0, 0, scale, 0, 0);
      context.font = `${0.8 * em}px system-ui, sans-serif`;
      context.lineCap = "round";
      context.lineJoin = "round";
    }
  }

  clear() {
    this.context.clearRect(0, 0, this.width, this.height);
  }

  /** Draw the left part of one of the pictures that stay. */
  paste(picture, alpha = 1, part = 1) {
    const wide = Math.round(picture.width * part);
    if (wide < 1) return;
    this.context.globalAlpha = alpha;
    this.context.drawImage(picture, 0, 0, wide, picture.height, 0, 0, (this.width * wide) / picture.width, this.height);
    this.context.globalAlpha = 1;
  }
}

function stroke(context, points, colour, thickness, dash = []) {
  context.strokeStyle = colour;
  context.lineWidth = thickness;
  context.setLineDash(dash);
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  context.stroke();
  context.setLineDash([]);
}

function arrow(context, [x0, y0], [x1, y1], colour, thickness, dash) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length < 1) return;
  const head = Math.min(0.75 * em, 0.6 * length);
  const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
  const base = [x1 - head * ux, y1 - head * uy];
  stroke(context, [[x0, y0], base], colour, thickness, dash);
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(base[0] - 0.45 * head * uy, base[1] + 0.45 * head * ux);
  context.lineTo(base[0] + 0.45 * head * uy, base[1] - 0.45 * head * ux);
  context.fill();
}

/** Write on a patch of paper, inside the drawing. */
function write(drawing, text, x, y, colour, align = "center") {
  const { context } = drawing;
  const wide = context.measureText(text).width;
  let left = align === "center" ? x - wide / 2 : align === "right" ? x - wide : x;
  left = Math.max(2, Math.min(left, drawing.width - wide - 2));
  const middle = Math.max(0.55 * em, Math.min(y, drawing.height - 0.55 * em));
  context.textBaseline = "middle";
  context.globalAlpha = 0.75;
  context.fillStyle = colours.paper;
  context.fillRect(left - 2, middle - 0.5 * em, wide + 4, em);
  context.globalAlpha = 1;
  context.fillStyle = colour;
  context.fillText(text, left, middle);
}

/** Round numbers from low to high, about as many as wanted. */
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.999);
  const found = [];
  const first = Math.ceil(low / step - 1e-9);
  // Where numbers are too large for steps so small, first + 1 is first, and the last tick would never come.
  for (let i = 0; i <= 3 * wanted && (first + i) * step <= high + 1e-9 * step; i++) found.push((first + i) * step);
  return found;
}

/** Axes with ticks on the picture that stays; `place` turns a pair of numbers into a place of the drawing. */
function drawAxes(drawing, box, place, names) {
  const context = drawing.still.getContext("2d");
  context.clearRect(0, 0, drawing.width, drawing.height);
  context.fillStyle = colours.soft;
  context.textBaseline = "middle";
  context.textAlign = "center";
  for (const tick of ticks(box.x[0], box.x[1], 5)) {
    const [x] = place(tick, box.y[0]);
    stroke(context, [[x, place(tick, box.y[0])[1]], [x, place(tick, box.y[1])[1]]], colours.line, 1);
    context.fillText(numberText(Number(tick.toPrecision(6))), x, drawing.height - 1.7 * em);
  }
  context.fillText(names[0], drawing.width / 2, drawing.height - 0.6 * em);
  context.textAlign = "right";
  for (const tick of ticks(box.y[0], box.y[1], 5)) {
    const [left, y] = place(box.x[0], tick);
    stroke(context, [[left, y], [place(box.x[1], tick)[0], y]], colours.line, 1);
    context.fillText(numberText(Number(tick.toPrecision(6))), left - 0.4 * em, y);
  }
  context.textAlign = "left";
  context.fillText(names[1], 2, 0.6 * em);
  return context;
}

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}

/** Read the size of the type and the colours of the style, for light and for dark. */
function readStyle() {
  const style = getComputedStyle(document.documentElement);
  em = parseFloat(style.fontSize);
  for (const name of ["paper", "ink", "soft", "line", "negative", "positive", "wrong", "lower", "upper", "room"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}
