// The run and its weights. Step k of the run is its state after k updates.

const run = JSON.parse(byId("run").textContent);
const last = run.example.length;
const width = run.names.length;
const separable = run.gamma > 0;
const [xAxis, yAxis] = run.axes ?? [];
const MOVE = run.rate === 1 ? "y·x" : "η·y·x"; // what an update adds to w

/** The label and the y of a class, once if they are the same number. */
function className(sign) {
  const label = run.classes[run.classes.length > 1 && sign > 0 ? 1 : 0];
  const y = sign > 0 ? "y = +1" : "y = −1";
  return Number(label) === sign ? y : `${label}, ${y}`;
}

// The weights of a step: the run again, from the nearest state that was kept. All are kept unless that takes over 32 MB.

const stride = Math.ceil(((last + 1) * width) / 4e6);
const kept = [Float64Array.from(run.start)];

function learn(w, k) {
  const [columns, values] = run.moves[run.example[k]];
  for (let j = 0; j < columns.length; j++) w[columns[j]] += run.rate * values[j];
}

function weightsAt(k) {
  for (let block = kept.length; block * stride <= k; block++) {
    const w = kept[block - 1].slice();
    for (let i = (block - 1) * stride; i < block * stride; i++) learn(w, i);
    kept.push(w);
  }
  const block = Math.floor(k / stride);
  const w = stride === 1 ? kept[block] : kept[block].slice();
  for (let i = block * stride; i < k; i++) learn(w, i);
  return w;
}
