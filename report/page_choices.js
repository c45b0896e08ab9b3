// Draws the choices of many trials: an axis for each task that matters most, for the cost and for
// the objective, and a line through the values of each trial.

const MOST_LINES = 300, AXIS = 58;

// Trials within the bounds, best first. If there are too many, every n-th of those behind the best
// is drawn.
function rankedPoints(record) {
  const goal = objective(record), points = record.trials.points, values = points.metrics[goal.metric];
  const rows = points.id.map((id, i) => i).filter((i) => points.state[i] === 0 && values[i] !== null);
  rows.sort((a, b) => (goal.maximise ? -1 : 1) * (values[a] - values[b]));
  const nBest = Math.max(1, Math.round(Math.min(rows.length, MOST_LINES) / 10));
  const each = Math.ceil((rows.length - nBest) / (MOST_LINES - nBest));
  return rows.filter((i, rank) => rank < nBest || (rank - nBest) % each === 0).map((i, rank) => ({ i: i, isBest: rank < nBest }));
}

function taskAxis(task) {
  const last = Math.max(1, task.labels.length - 1);
  // Lines of one choice are spread a little, in the order of their trials.
  const spread = (i) => ((i * 0.618034) % 1 - .5) * Math.min(.4 / last, .05);
  return { title: short(task.task, 40), ends: task.labels.map((label, k) => [task.labels.length === 1 ? .5 : k / last, label]),
           place: (i) => (task.labels.length === 1 ? .5 : task.choices[i] / last) + spread(i) };
}

function metricAxis(metric, values, rows) {
  const real = rows.map((row) => values[row.i]).filter((v) => v !== null);
  const least = Math.min(...real), most = Math.max(...real);
  const isLog = least > 0 && most > 10 * least;
  const share = (v) => isLog ? Math.log(v / least) / Math.log(most / least) : (v - least) / (most - least);
  return { title: metricName(metric), ends: least < most ? [[0, quantity(metric, least)], [1, quantity(metric, most)]] : [[.5, quantity(metric, least)]],
           place: (i) => values[i] === null ? null : least < most ? share(values[i]) : .5 };
}

function drawChoices(figure, record) {
  const rows = rankedPoints(record), trials = record.trials, name = objective(record).metric;
  const metrics = [trials.cost, name].filter((m, i, all) => m && all.indexOf(m) === i);
  if (rows.length < 2 || trials.tasks.length === 0) {
    return;
  }
  const axes = trials.tasks.map(taskAxis).concat(metrics.map((m) => metricAxis(m, trials.points.metrics[m], rows)));
  const width = Math.max(280, figure.clientWidth), left = 14, right = width - 14;
  const at = (share) => left + share * (right - left), level = (k) => 34 + k * AXIS;
  const svg = makeSvg("svg", { viewBox: "0 0 " + width + " " + (level(axes.length - 1) + 30), role: "img",
                               "aria-label": figure.dataset.label, class: "choices" });
  rows.reverse().forEach((row) => { // the best last, on top
    const places = axes.map((axis, k) => [axis.place(row.i), k]).filter(([share]) => share !== null);
    const line = makeSvg("path", { class: row.isBest ? "best" : "other",
                                   d: "M" + places.map(([share, k]) => at(share).toFixed(1) + " " + level(k)).join("L") });
    line.append(makeSvg("title", {}, "trial " + trials.points.id[row.i] + ": " + quantity(name, trials.points.metrics[name][row.i])));
    svg.append(line);
  });
  axes.forEach((axis, k) => {
    svg.append(makeSvg("path", { class: "axis", d: "M" + left + " " + level(k) + "H" + right }),
               makeSvg("text", { x: left, y: level(k) - 8, class: "title" }, axis.title));
    const room = Math.floor((right - left) / axis.ends.length / 7);
    axis.ends.forEach(([share, label]) => svg.append(makeSvg("text", { x: at(share), y: level(k) + 16,
      "text-anchor": share === 0 ? "start" : share === 1 ? "end" : "middle" }, short(label, Math.max(6, room)))));
  });
  figure.append(svg);
}
