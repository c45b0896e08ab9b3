// Charts of trials, for one record or several: the best so far, loss against cost, speed.

// A plan whose label begins with "the", such as "the quickest", is not uniform.
function isUniform(label) {
  return !label.startsWith("the ");
}

function planName(label) {
  return (isUniform(label) ? "uniform " : "") + label;
}

// The best uniform plan within the bounds.
function uniform(record) {
  const goal = objective(record);
  const rows = record.numbers.baselines.filter((row) => row.state === "complete" && !row.left_out &&
    row.label !== undefined && isUniform(row.label) && isFinite(row.metrics[goal.metric]));
  rows.sort((a, b) => (goal.maximise ? -1 : 1) * (a.metrics[goal.metric] - b.metrics[goal.metric]));
  return rows[0];
}

// The improvements that the chart's scale fits. The scale begins with the best value after the first
// minute, or after the first twentieth of a shorter search: what came before would press all later
// improvements into a flat line. For the same reason it leaves out first steps that are each more than
// nine tenths of all that is left to improve, as long as two values remain.
function lateSteps(record, points) {
  const first = Math.min(60, record.trials.elapsed_s / 20), seconds = record.trials.best.seconds;
  const isLate = (p, i) => i < seconds.length && (seconds[i] > first || p.trial > record.trials.n / 20);
  const late = points.findIndex(isLate);
  let kept = late < 0 ? points.slice(-2) : points.slice(Math.max(0, late - 1));
  const last = points.length > 0 ? points[points.length - 1].y : 0;
  const left = (i) => Math.abs(kept[i].y - last);
  while (kept.length > 3 && left(1) > 0 && left(1) < left(0) / 10) { // the last point repeats the last value
    kept = kept.slice(1);
  }
  return kept;
}

function drawBest(figure, record, axis) {
  const goal = objective(record), name = goal.metric;
  const unit = clock(record.trials.elapsed_s);
  const points = steps(record, axis, unit[1]);
  const end = points.length > 0 ? points[points.length - 1].x : 0;
  if (!(end > 0)) { // no trial, or no time was recorded
    figure.hidden = true;
    return;
  }
  const late = lateSteps(record, points).map((p) => p.y), first = late[0], last = points[points.length - 1].y;
  const isBeyond = (value) => goal.maximise ? value < Math.min(first, last) : value > Math.max(first, last);
  const sets = [line("best so far", points, "accent")], notes = [];
  const plain = uniform(record), least = plain && plain.metrics[name];
  const isFlat = first === last;
  if (plain && (isFlat || !isBeyond(least))) {
    sets.push(level(planName(short(plain.label, 24)), least, points[0].x, end));
    late.push(least);
  } else if (plain) {
    notes.push(planName(short(plain.label, 24)) + ": " + quantity(name, least));
  }
  const cut = isFlat ? points.map((p) => p.y).concat(late) : late;
  if (points.some((p) => isBeyond(p.y)) && !isFlat) {
    notes.push("first value: " + quantity(name, points[0].y));
  }
  const title = axis === "trial" ? "trials" : unit[0] + " of search";
  const y = scaleOf(name, cut), room = .05 * (Math.max(...cut) - Math.min(...cut));
  if (y.min === undefined && room > 0) {
    y.min = Math.min(...cut) - room;
    y.max = Math.max(...cut) + room;
  }
  draw(figure, "line", sets, { x: scale(title, { type: "linear", min: 0, max: end }), y: y }, {
    label: (item) => item.raw.trial === undefined ? item.dataset.label + ": " + quantity(name, item.raw.y)
      : "trial " + item.raw.trial + ": " + quantity(name, item.raw.y) });
  if (notes.length > 0 && typeof Chart !== "undefined") {
    figure.append(make("p", { class: "note" }, "Beyond the chart: " + notes.join(", ") + "."));
  }
}

// Each record has a color and dashes; 30 combinations are distinct.
const COLORS = ["accent", "second", "third", "bits-4", "good", "bad"];
const DASHES = [[], [8, 3], [2, 2], [8, 3, 2, 3], [4, 4]];

function recordLine(record, points, i) {
  return Object.assign(line(record.name, points, COLORS[i % COLORS.length]), { borderDash: DASHES[i % DASHES.length] });
}

// Returns the records with the objective of the first one, which fit on one axis. A note names the
// others.
function takeAlike(figure, records) {
  const first = records.length > 0 ? objective(records[0]) : null;
  const isAlike = (r) => objective(r).metric === first.metric && objective(r).maximise === first.maximise;
  const others = records.filter((r) => !isAlike(r));
  if (others.length > 0 && typeof Chart !== "undefined") {
    figure.append(make("p", { class: "note" }, "Not drawn, because their objective differs: " + others.map((r) => r.name).join(", ") + "."));
  }
  return records.filter(isAlike);
}

function drawCompared(figure, records) {
  const usable = takeAlike(figure, records.filter((r) => r.trials.best.value.length > 0));
  const sets = usable.map((r, i) => recordLine(r, steps(r, "trial", 1), i));
  const values = usable.flatMap((r) => r.trials.best.value);
  if (sets.length > 0) {
    const most = Math.max(...usable.map((r) => r.trials.n));
    draw(figure, "line", sets, { x: scale("trials", { type: "linear", min: 0, max: most }), y: scaleOf(objective(usable[0]).metric, values) }, {
      label: (item) => item.dataset.label + ", trial " + item.raw.trial + ": " + quantity(objective(usable[0]).metric, item.raw.y) });
  }
}

function drawFronts(figure, records) {
  const first = records[0], cost = first.trials.cost, name = objective(first).metric;
  const sets = [], values = [];
  takeAlike(figure, records).forEach((r, i) => {
    const points = r.trials.front.map((row) => ({ x: row.metrics[cost], y: row.metrics[name], trial: row.id }))
      .filter((p) => isFinite(p.x) && isFinite(p.y)).sort((a, b) => a.x - b.x);
    points.forEach((p) => values.push(p.y));
    const set = recordLine(r, points, i);
    set.pointRadius = 3;
    set.pointStyle = ["circle", "triangle", "rect", "rectRot"][i % 4];
    set.stepped = "before";
    if (points.length > 0) {
      sets.push(set);
    }
  });
  if (cost && values.length > 0) {
    draw(figure, "line", sets, { x: scaleOf(cost, sets.flatMap((set) => set.data.map((p) => p.x))), y: scaleOf(name, values) }, {
      label: (item) => item.dataset.label + ", trial " + item.raw.trial + ": " + quantity(name, item.raw.y) + " at " + quantity(cost, item.raw.x) });
  }
}

// ---- Layers of several records ----------------------------------------------------------------

// The joints of all records' layers, in the order of the first record that has them.
function jointsOf(records) {
  return [...new Set(records.flatMap((r) => r.layers.layers.map((layer) => layer.joint)))];
}

let chosenQuantity = "error"; // kept when the chart is drawn again

function drawLayersCompared(figure, records) {
  const usable = records.filter((r) => r.layers), joints = jointsOf(usable);
  const quantities = { error: ["error after the layer", "size_ratio"], bytes: ["bytes of weights", "size_bytes"], us: ["time", "latency_us"] };
  if (usable.length === 0 || typeof Chart === "undefined") {
    return;
  }
  const select = make("select", {});
  Object.keys(quantities).forEach((key) => {
    const option = make("option", { value: key }, quantities[key][0]);
    option.selected = key === chosenQuantity;
    select.append(option);
  });
  select.addEventListener("change", () => {
    charts = charts.filter((c) => figure.contains(c.canvas) ? c.destroy() : true);
    figure.replaceChildren();
    chosenQuantity = select.value;
    drawLayersCompared(figure, records);
    figure.querySelector("select").focus();
  });
  figure.append(make("label", {}, "Of each layer", select));
  const [title, metric] = quantities[chosenQuantity];
  const sets = usable.map((r, i) => {
    const places = new Map(joints.map((joint, x) => [joint, x]));
    const points = r.layers.layers.map((layer) => ({ x: places.get(layer.joint), y: layer[chosenQuantity], joint: layer.joint }))
      .filter((p) => p.y > 0).sort((a, b) => a.x - b.x);
    return Object.assign(recordLine(r, points, i), { stepped: false, pointRadius: 3, pointStyle: ["circle", "triangle", "rect", "rectRot"][i % 4] });
  });
  const x = scale("layers, in the network's order", { type: "linear", min: -.5, max: joints.length - .5 });
  x.ticks.display = false;
  const y = scaleOf(metric, sets.flatMap((set) => set.data.map((p) => p.y)));
  y.title.text = title;
  draw(figure, "line", sets, { x: x, y: y }, {
    label: (item) => item.dataset.label + ", " + short(item.raw.joint, 60) + ": " + quantity(metric, item.raw.y, 3),
    options: { interaction: { mode: "nearest", axis: "xy", intersect: false } } });
}

// ---- Loss against cost ------------------------------------------------------------------------

function scatter(label, points, more) {
  return Object.assign({ label: label, data: points, type: "scatter", pointHitRadius: 4 }, more);
}

function tradeoffSets(record, cost) {
  const name = objective(record).metric, points = record.trials.points;
  const delivered = record.delivered ? record.delivered.id : -1;
  const groups = { kept: [], out: [], uniform: [], delivered: [] };
  const isOfUniform = (i) => record.numbers.baselines[i] !== undefined && isUniform(record.numbers.baselines[i].label);
  points.id.forEach((id, i) => {
    const point = { x: points.metrics[cost][i], y: points.metrics[name][i], trial: id, baseline: points.baseline[i] };
    if (point.x === null || point.y === null) {
      return;
    }
    const group = id === delivered && !record.delivered.distilled ? "delivered" : isOfUniform(point.baseline) ? "uniform" : points.state[i] === 0 ? "kept" : "out";
    groups[group].push(point);
  });
  if (record.delivered && record.delivered.distilled) { // the plan with improved weights
    groups.delivered.push({ x: record.delivered.metrics[cost], y: record.delivered.metrics[name], trial: delivered });
  }
  const many = groups.kept.length > 800 ? 1.6 : 2.6;
  const sets = [
    scatter("delivered", groups.delivered, { backgroundColor: color("second"), borderColor: color("card"), borderWidth: 1.5, pointRadius: 7, pointStyle: "rectRot" }),
    scatter("uniform plans", groups.uniform, { backgroundColor: color("third"), borderColor: color("card"), borderWidth: 1, pointRadius: 6, pointStyle: "triangle" }),
    scatter("trials within the bounds", groups.kept, { backgroundColor: faded(color("accent"), .55), borderWidth: 0, pointRadius: many, pointStyle: "circle" }),
    scatter("outside", groups.out, { backgroundColor: "transparent", borderColor: faded(color("faint"), .7), borderWidth: 1, pointRadius: many, pointStyle: "circle" }),
  ];
  const front = record.trials.front.map((row) => ({ x: row.metrics[cost], y: row.metrics[name], trial: row.id }))
    .filter((p) => isFinite(p.x) && isFinite(p.y)).sort((a, b) => a.x - b.x);
  if (front.length > 1 && cost === record.trials.cost) {
    const set = line("front", front, "accent");
    set.pointRadius = 0;
    set.stepped = "before";
    sets.push(set);
  }
  return sets.filter((set) => set.data.length > 0);
}

function limitSet(record, cost, values) {
  const bound = record.numbers.bounds && record.numbers.bounds.find((b) => b.metric === cost);
  const limit = bound && (bound.max !== undefined ? bound.max : bound.min);
  if (limit === undefined || !isFinite(limit)) {
    return null;
  }
  const set = level("bound", 0, 0, 0);
  set.data = [{ x: limit, y: Math.min(...values) }, { x: limit, y: Math.max(...values) }];
  return set;
}

// The reader's choices by the article's id; they are kept when a chart is drawn again.
const chosenCosts = new Map();

function drawTradeoff(figure, record) {
  const name = objective(record).metric, metrics = record.trials.points.metrics;
  const costs = Object.keys(metrics).filter((m) => m !== name && new Set(metrics[m].filter((v) => v !== null)).size > 1);
  const article = figure.closest("article").id, chosen = chosenCosts.get(article);
  const cost = costs.includes(chosen) ? chosen : record.trials.cost || costs[0];
  if (!cost || record.trials.points.id.length === 0 || typeof Chart === "undefined") {
    return;
  }
  const select = make("select", {});
  costs.forEach((m) => {
    const option = make("option", { value: m }, metricName(m));
    option.selected = m === cost;
    select.append(option);
  });
  select.addEventListener("change", () => {
    charts = charts.filter((c) => figure.contains(c.canvas) ? c.destroy() : true);
    figure.replaceChildren();
    chosenCosts.set(article, select.value);
    drawTradeoff(figure, record);
    figure.querySelector("select").focus();
  });
  figure.append(make("label", {}, "Cost", select));
  const sets = tradeoffSets(record, cost);
  const values = sets.flatMap((set) => set.data.map((p) => p.y));
  const bound = limitSet(record, cost, values);
  const label = (item) => {
    const raw = item.raw;
    const baseline = record.numbers.baselines[raw.baseline];
    return raw.trial === undefined ? "bound: " + quantity(cost, raw.x)
      : (baseline ? planName(baseline.label) : "trial " + raw.trial) + ": " + quantity(name, raw.y) + " at " + quantity(cost, raw.x);
  };
  draw(figure, "scatter", bound ? sets.concat(bound) : sets,
       { x: scaleOf(cost, sets.flatMap((set) => set.data.map((p) => p.x))), y: scaleOf(name, values) }, { label: label });
}

function drawSpeed(figure, record, what, title) {
  const speed = record.trials.speed, unit = clock(record.trials.elapsed_s);
  const points = speed.seconds.map((s, i) => ({ x: s / unit[1], y: speed[what][i] })).filter((p) => p.y !== null);
  if (points.length === 0) {
    return;
  }
  const set = line(title, points, what === "reuse" ? "third" : "accent");
  set.stepped = false;
  set.pointStyle = "circle";
  const y = scale(title, { type: "linear", beginAtZero: true });
  if (what === "reuse") {
    y.max = 1;
  }
  draw(figure, "line", [set], { x: scale(unit[0] + " of search", { type: "linear" }), y: y },
       { label: (item) => shown(item.raw.y) });
}
