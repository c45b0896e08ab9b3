// Charts of a plan: its tasks, and the effects of choices.

// Longer plans are drawn as means over groups of consecutive tasks.
const MOST_BARS = 160, STRETCHES = 80;

function stretchesOf(rows, each) {
  const groups = new Map();
  rows.forEach((row) => {
    const at = Math.floor(row.x / each);
    groups.set(at, (groups.get(at) || []).concat(row));
  });
  return [...groups.entries()].sort((a, b) => a[0] - b[0]).map(([at, group]) => ({
    x: at * each + (each - 1) / 2, y: group.reduce((sum, row) => sum + row.y, 0) / group.length,
    task: group.length === 1 ? group[0].task : short(group[0].task, 40) + " to " + short(group[group.length - 1].task, 40),
    choice: shown(Math.min(...group.map((row) => row.y))) + " to " + shown(Math.max(...group.map((row) => row.y))) }));
}

function drawLayers(figure, record) {
  const plan = record.plan;
  const each = plan.length > MOST_BARS ? Math.ceil(plan.length / STRETCHES) : 1;
  if (!plan.some((row) => row.bits !== undefined || row.density !== undefined)) {
    return;
  }
  const kinds = [["weight", "bits of weights", "accent", "bits"], ["activation", "bits of activations", "second", "bits"],
                 ["joint", "bits of joints", "accent", "bits"], ["task", "bits", "accent", "bits"],
                 ["channels", "kept channels", "third", "density"], ["sparsity", "kept elements", "third", "density"]];
  const sets = [];
  kinds.forEach(([kind, label, name, what]) => {
    const rows = plan.map((row, i) => ({ x: i, y: row[what], task: row.task, choice: row.choice, kind: row.kind }))
      .filter((row) => row.kind === kind && row.y !== undefined);
    if (rows.length > 0) {
      sets.push({ label: label, data: each > 1 ? stretchesOf(rows, each) : rows, borderColor: color(name), borderWidth: 2,
                  pointRadius: 2, backgroundColor: color(name), yAxisID: what === "bits" ? "y" : "y2",
                  barPercentage: .9, categoryPercentage: .9, maxBarThickness: 32, grouped: false, pointStyle: "rect", minBarLength: 2 });
    }
  });
  const title = "tasks, in the network's order" + (each > 1 ? ": means over " + each + " at a time" : "");
  const scales = { x: scale(title, { type: "linear", min: -.5, max: plan.length - .5, offset: false }) };
  scales.x.ticks.display = false;
  scales.x.grid = { display: false };
  const has = (axis) => sets.some((set) => set.yAxisID === axis);
  if (has("y")) {
    scales.y = scale("bits", { min: 0, suggestedMax: 8 });
    scales.y.ticks.stepSize = 2;
  }
  if (has("y2")) {
    scales.y2 = scale("density", { min: 0, max: 1, position: has("y") ? "right" : "left" });
    scales.y2.grid = { display: !has("y"), color: color("line") };
  }
  draw(figure, each > 1 ? "line" : "bar", sets, scales, { label: (item) => short(item.raw.task, 90) + ": " + item.raw.choice,
    options: { interaction: { mode: "nearest", axis: "x", intersect: false } } });
}

// Level bars, one for each row with a `name`: its value, and the words of its tooltip.
function drawLevelBars(figure, rows, title, words, ticks) {
  const set = { label: title, data: rows.map((row, i) => ({ y: i, x: row.value, row: row })),
                backgroundColor: color("accent"), barPercentage: .75, maxBarThickness: 22 };
  const y = scale("", { type: "category", labels: rows.map((row) => short(row.name, 30)) });
  y.title.display = false;
  y.grid = { display: false };
  y.ticks.autoSkip = false;
  y.ticks.maxTicksLimit = 20;
  const x = scale(title, { type: "linear" });
  x.ticks.callback = ticks;
  draw(figure, "bar", [set], { x: x, y: y }, { label: (item) => words(item.raw.row),
    options: { indexAxis: "y", interaction: { mode: "nearest", axis: "y", intersect: false } } });
}

const MOST_LEVEL_BARS = 15;

function drawEffects(figure, record) {
  const tasks = new Set(), metric = record.effects.metric;
  const rows = record.effects.alone.filter((row) => !tasks.has(row.task) && tasks.add(row.task)).slice(0, MOST_LEVEL_BARS) // largest first
    .map((row) => ({ name: row.task, value: row.difference, choice: row.choice }));
  if (rows.length > 0) {
    drawLevelBars(figure, rows, "difference in " + metricName(metric).toLowerCase(),
                  (row) => short(row.name, 60) + ", " + row.choice + ": " + quantity(metric, row.value),
                  (value) => quantity(metric, Number(value.toPrecision(3))));
  }
}

function drawImportance(figure, record) {
  const rows = record.effects.importance.tasks.slice(0, MOST_LEVEL_BARS).map((row) => ({ name: row.task, value: 100 * row.share }));
  drawLevelBars(figure, rows, "share of the variance, %", (row) => short(row.name, 60) + ": " + Number(row.value.toPrecision(3)) + " %",
                (value) => value + " %");
}
