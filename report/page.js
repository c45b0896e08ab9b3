// Draws the charts and the network of a report from the document in it, and keeps a served page up to date.
// Everything of the document becomes text or numbers, never markup.
"use strict";
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  let charts = [];
  let data = null;

  // ---- Small things ---------------------------------------------------------------------------

  function make(name, attributes, ...children) {
    const element = document.createElement(name);
    for (const key in attributes) {
      element.setAttribute(key, attributes[key]);
    }
    element.append(...children);
    return element;
  }

  function makeSvg(name, attributes, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const key in attributes) {
      element.setAttribute(key, attributes[key]);
    }
    element.append(...children);
    return element;
  }

  function color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  function faded(text, share) { // of "#rrggbb"
    return text + Math.round(share * 255).toString(16).padStart(2, "0");
  }

  function shown(value) {
    if (value === null || value === undefined || !isFinite(value)) {
      return "–";
    }
    return Number.isInteger(value) ? String(value) : Number(value.toPrecision(4)).toString();
  }

  function short(name, length) {
    return name.length <= length ? name
      : name.slice(0, Math.ceil(length / 3)) + "…" + name.slice(-Math.floor(2 * length / 3) + 1);
  }

  // ---- Charts ---------------------------------------------------------------------------------

  function scale(title, more) {
    return Object.assign({
      title: { display: true, text: title, color: color("quiet") },
      ticks: { color: color("quiet"), maxTicksLimit: 8, maxRotation: 0 },
      grid: { color: color("line"), borderColor: color("line") },
    }, more);
  }

  // Logarithmic where values are above 0 and far apart.
  function scaleOf(title, values) {
    const real = values.filter((v) => v !== null && isFinite(v));
    const least = Math.min(...real), greatest = Math.max(...real);
    const isLog = real.length > 1 && least > 0 && greatest > 10 * least;
    const axis = scale(title, { type: isLog ? "logarithmic" : "linear" });
    axis.ticks.callback = function (value) {
      const digit = Math.round(value / Math.pow(10, Math.floor(Math.log10(value))));
      const isDense = greatest > 2000 * least;
      return !isLog || digit === 1 || (!isDense && (digit === 2 || digit === 5))
        ? Number(value.toPrecision(3)).toString() : "";
    };
    if (isLog) {
      axis.ticks.autoSkip = true;
      axis.ticks.maxTicksLimit = 12;
      axis.min = least * .8;
      axis.max = greatest * 1.25;
    }
    return axis;
  }

  function draw(figure, type, datasets, scales, more) {
    if (typeof Chart === "undefined") {
      return;
    }
    const canvas = make("canvas", { role: "img", "aria-label": figure.dataset.label || "" });
    const room = make("div", { class: "room" }, canvas);
    figure.append(room);
    const options = Object.assign({
      animation: false, responsive: true, maintainAspectRatio: false, scales: scales, parsing: false,
      normalized: true, interaction: { mode: "nearest", axis: "xy", intersect: false },
      plugins: {
        legend: { display: datasets.length > 1,
                  labels: { color: color("quiet"), usePointStyle: true, boxWidth: 8, boxHeight: 8 } },
        tooltip: { displayColors: false },
      },
    }, (more && more.options) || {});
    if (more && more.label) {
      options.plugins.tooltip.callbacks = { title: () => "", label: more.label };
    }
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    charts.push(new Chart(canvas, { type: type, data: Object.assign({ datasets: datasets }, more && more.data), options: options }));
  }

  function objective(record) {
    return record.numbers.objectives[0];
  }

  function clock(seconds) { // a unit for an axis that goes so far
    return seconds > 5400 ? ["hours", 3600] : seconds > 180 ? ["minutes", 60] : ["seconds", 1];
  }

  function steps(record, axis, unit) {
    const best = record.trials.best;
    const xs = axis === "trial" ? best.trial : best.seconds.map((s) => s / unit);
    const points = xs.map((x, i) => ({ x: x, y: best.value[i], trial: best.trial[i] }));
    if (points.length > 0) {
      const last = points[points.length - 1];
      const end = axis === "trial" ? record.trials.n : record.trials.elapsed_s / unit;
      points.push({ x: Math.max(end, last.x), y: last.y, trial: last.trial });
    }
    return points;
  }

  function line(label, points, name) {
    return { label: label, data: points, type: "line", stepped: true, borderColor: color(name),
             backgroundColor: color(name), borderWidth: 2, pointRadius: points.length > 60 ? 0 : 2,
             pointHitRadius: 8, pointStyle: "line" };
  }

  function level(label, value, from, to) {
    return { label: label, data: [{ x: from, y: value }, { x: to, y: value }], type: "line",
             borderColor: color("faint"), backgroundColor: color("faint"), borderWidth: 1.5,
             borderDash: [5, 4], pointRadius: 0, pointStyle: "line" };
  }

  // The best uniform plan that keeps the bounds.
  function uniform(record) {
    const goal = objective(record);
    const rows = record.numbers.baselines.filter((row) => row.state === "complete" && !row.left_out &&
      row.label !== undefined && isFinite(row.metrics[goal.metric]));
    rows.sort((a, b) => (goal.maximise ? -1 : 1) * (a.metrics[goal.metric] - b.metrics[goal.metric]));
    return rows[0];
  }

  function drawBest(figure, record, axis) {
    const name = objective(record).metric;
    const unit = clock(record.trials.elapsed_s);
    const points = steps(record, axis, unit[1]);
    const end = points.length > 0 ? points[points.length - 1].x : 0;
    if (!(end > 0)) { // nothing yet, or within no time that was noted
      figure.hidden = true;
      return;
    }
    const sets = [line("best so far", points, "accent")];
    const plain = uniform(record);
    const values = points.map((p) => p.y);
    if (plain) {
      sets.push(level("uniform " + short(plain.label, 24), plain.metrics[name], points[0].x, points[points.length - 1].x));
      values.push(plain.metrics[name]);
    }
    const title = axis === "trial" ? "trials" : unit[0] + " of search";
    draw(figure, "line", sets, { x: scale(title, { type: "linear", min: 0, max: end }), y: scaleOf(name, values) }, {
      label: (item) => item.raw.trial === undefined ? item.dataset.label + ": " + shown(item.raw.y)
        : "trial " + item.raw.trial + ": " + shown(item.raw.y) });
  }

  const COLORS = ["accent", "second", "third", "bits-4", "good", "bad"];

  function drawCompared(figure, records) {
    const usable = records.filter((r) => r.trials.best.value.length > 0);
    const sets = usable.map((r, i) => line(r.name, steps(r, "trial", 1), COLORS[i % COLORS.length]));
    const values = usable.flatMap((r) => r.trials.best.value);
    if (sets.length > 0) {
      const most = Math.max(...usable.map((r) => r.trials.n));
      draw(figure, "line", sets, { x: scale("trials", { type: "linear", min: 0, max: most }), y: scaleOf(objective(usable[0]).metric, values) }, {
        label: (item) => item.dataset.label + ", trial " + item.raw.trial + ": " + shown(item.raw.y) });
    }
  }

  function drawFronts(figure, records) {
    const first = records[0], cost = first.trials.cost, name = objective(first).metric;
    const sets = [], values = [];
    records.forEach((r, i) => {
      const points = r.trials.front.map((row) => ({ x: row.metrics[cost], y: row.metrics[name], trial: row.id }))
        .filter((p) => isFinite(p.x) && isFinite(p.y)).sort((a, b) => a.x - b.x);
      points.forEach((p) => values.push(p.y));
      const set = line(r.name, points, COLORS[i % COLORS.length]);
      set.pointRadius = 3;
      set.pointStyle = ["circle", "triangle", "rect", "rectRot"][i % 4];
      set.stepped = "before";
      if (points.length > 0) {
        sets.push(set);
      }
    });
    if (cost && values.length > 0) {
      draw(figure, "line", sets, { x: scale(cost, { type: "linear" }), y: scaleOf(name, values) }, {
        label: (item) => item.dataset.label + ", trial " + item.raw.trial + ": " + shown(item.raw.y) + " at " + shown(item.raw.x) });
    }
  }

  function scatter(label, points, more) {
    return Object.assign({ label: label, data: points, type: "scatter", pointHitRadius: 4 }, more);
  }

  function tradeoffSets(record, cost) {
    const name = objective(record).metric, points = record.trials.points;
    const delivered = record.delivered ? record.delivered.id : -1;
    const groups = { kept: [], out: [], uniform: [], delivered: [] };
    points.id.forEach((id, i) => {
      const point = { x: points.metrics[cost][i], y: points.metrics[name][i], trial: id, baseline: points.baseline[i] };
      if (point.x === null || point.y === null) {
        return;
      }
      const group = id === delivered ? "delivered" : point.baseline >= 0 ? "uniform" : points.state[i] === 0 ? "kept" : "out";
      groups[group].push(point);
    });
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

  function drawTradeoff(figure, record, chosen) {
    const name = objective(record).metric, metrics = record.trials.points.metrics;
    const costs = Object.keys(metrics).filter((m) => m !== name && new Set(metrics[m].filter((v) => v !== null)).size > 1);
    const cost = chosen || record.trials.cost || costs[0];
    if (!cost || record.trials.points.id.length === 0 || typeof Chart === "undefined") {
      return;
    }
    const select = make("select", {});
    costs.forEach((m) => {
      const option = make("option", { value: m }, m);
      option.selected = m === cost;
      select.append(option);
    });
    select.addEventListener("change", () => {
      charts = charts.filter((c) => figure.contains(c.canvas) ? c.destroy() : true);
      figure.replaceChildren();
      drawTradeoff(figure, record, select.value);
      figure.querySelector("select").focus();
    });
    figure.append(make("label", {}, "Cost", select));
    const sets = tradeoffSets(record, cost);
    const values = sets.flatMap((set) => set.data.map((p) => p.y));
    const bound = limitSet(record, cost, values);
    const label = (item) => {
      const raw = item.raw;
      const baseline = record.numbers.baselines[raw.baseline];
      return raw.trial === undefined ? "bound: " + shown(raw.x)
        : (baseline ? "uniform " + baseline.label : "trial " + raw.trial) + ": " + shown(raw.y) + " at " + shown(raw.x);
    };
    draw(figure, "scatter", bound ? sets.concat(bound) : sets,
         { x: scaleOf(cost, sets.flatMap((set) => set.data.map((p) => p.x))), y: scaleOf(name, values) }, { label: label });
  }

  // More tasks than bars have room for: means over stretches of them.
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
                   ["channels", "channels that stay", "third", "density"], ["sparsity", "elements that stay", "third", "density"]];
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

  function drawEffects(figure, record) {
    const most = new Map();
    record.effects.alone.forEach((row) => {
      if (!most.has(row.task) || Math.abs(most.get(row.task).difference) < Math.abs(row.difference)) {
        most.set(row.task, row);
      }
    });
    const rows = [...most.values()].sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference)).slice(0, 15);
    if (rows.length === 0) {
      return;
    }
    const set = { label: "difference", data: rows.map((row, i) => ({ y: i, x: row.difference, task: row.task, choice: row.choice })),
                  backgroundColor: color("accent"), barPercentage: .75, maxBarThickness: 22 };
    const y = scale("", { type: "category", labels: rows.map((row) => short(row.task, 30)) });
    y.title.display = false;
    y.grid = { display: false };
    y.ticks.autoSkip = false;
    y.ticks.maxTicksLimit = 20;
    draw(figure, "bar", [set], { x: scale("difference in " + record.effects.metric, { type: "linear" }), y: y }, {
      label: (item) => short(item.raw.task, 60) + ", " + item.raw.choice + ": " + shown(item.raw.x),
      options: { indexAxis: "y", interaction: { mode: "nearest", axis: "y", intersect: false } } });
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

  // ---- The network ----------------------------------------------------------------------------

  const NODE = { width: 136, height: 40, x: 152, y: 72 };

  function bitsClass(bits) {
    return bits <= 3 ? "w2" : bits <= 5 ? "w4" : bits <= 7 ? "w6" : bits <= 8 ? "w8" : "w16";
  }

  function planText(joint, plan) {
    const letters = { weight: "W", activation: "A", joint: "", channels: "ch ", sparsity: "sp ", task: "" };
    return (joint.tasks || []).map((t) => {
      const row = plan[t];
      const value = row.bits !== undefined ? String(row.bits) : row.density !== undefined ? Math.round(100 * row.density) + " %" : row.choice;
      return letters[row.kind] + value;
    });
  }

  function nodeOf(joint, plan) {
    const x = joint.column * NODE.x + 8, y = joint.layer * NODE.y + 8;
    const node = makeSvg("g", { class: "node", transform: "translate(" + x + " " + y + ")" });
    node.append(makeSvg("rect", { class: "body", width: NODE.width, height: NODE.height, rx: 6 }));
    const weight = (joint.tasks || []).map((t) => plan[t]).find((row) => row.kind !== "activation" && row.bits !== undefined) ||
      (joint.tasks || []).map((t) => plan[t]).find((row) => row.bits !== undefined);
    if (weight) {
      node.append(makeSvg("rect", { class: "swatch " + bitsClass(weight.bits), x: 0, y: 0, width: 6, height: NODE.height, rx: 3 }));
    }
    const op = joint.op.replace(/^(nn|msc)\./, "");
    node.append(makeSvg("text", { x: 14, y: 16 }, short(op, 18)));
    node.append(makeSvg("text", { x: 14, y: 31, class: "plan" }, short(planText(joint, plan).join(" · ") || joint.shape, 22)));
    node.append(makeSvg("title", {}, joint.name));
    return node;
  }

  function edgeOf(from, to) {
    const x1 = from.column * NODE.x + 8 + NODE.width / 2, y1 = from.layer * NODE.y + 8 + NODE.height;
    const x2 = to.column * NODE.x + 8 + NODE.width / 2, y2 = to.layer * NODE.y + 8;
    const isLong = to.layer - from.layer > 1 && Math.abs(from.column - to.column) < .6;
    const side = isLong ? NODE.width * .62 : 0; // around what lies between
    const middle = (y2 - y1) / 2;
    return makeSvg("path", { class: "edge", d: isLong
      ? "M" + x1 + " " + y1 + "C" + (x1 + side) + " " + (y1 + 30) + " " + (x2 + side) + " " + (y2 - 30) + " " + x2 + " " + y2
      : "M" + x1 + " " + y1 + "C" + x1 + " " + (y1 + middle) + " " + x2 + " " + (y2 - middle) + " " + x2 + " " + y2 });
  }

  // What is seen of the drawing: `view` is its middle top, and how many pixels a unit has.
  function makeView(frame, drawing, graph) {
    const view = { x: 0, y: 0, zoom: 1 };
    const width = graph.columns * NODE.x, height = graph.layers * NODE.y;
    function show() {
      drawing.setAttribute("transform", "translate(" + view.x + " " + view.y + ") scale(" + view.zoom + ")");
    }
    function zoomBy(factor, x, y) {
      const zoom = Math.min(4, Math.max(.05, view.zoom * factor));
      view.x = x - (x - view.x) * zoom / view.zoom;
      view.y = y - (y - view.y) * zoom / view.zoom;
      view.zoom = zoom;
      show();
    }
    function fit(isWhole) {
      const box = frame.getBoundingClientRect();
      view.zoom = Math.min(isWhole ? 1.2 : 1, box.width / width, isWhole ? box.height / height : 1);
      view.zoom = Math.max(view.zoom, isWhole ? .05 : .35);
      view.x = (box.width - width * view.zoom) / 2;
      view.y = isWhole ? (box.height - height * view.zoom) / 2 : 4;
      show();
    }
    function center(joint) {
      const box = frame.getBoundingClientRect();
      view.zoom = Math.max(view.zoom, .8);
      view.x = box.width / 2 - (joint.column * NODE.x + NODE.x / 2) * view.zoom;
      view.y = box.height / 2 - (joint.layer * NODE.y + NODE.y / 2) * view.zoom;
      show();
    }
    function move(x, y) {
      view.x += x;
      view.y += y;
      show();
    }
    function zoom(factor) {
      const box = frame.getBoundingClientRect();
      zoomBy(factor, box.width / 2, box.height / 2);
    }
    return { zoomBy: zoomBy, zoom: zoom, fit: fit, center: center, move: move };
  }

  function listen(frame, view) {
    let held = null;
    frame.addEventListener("pointerdown", (e) => {
      held = { x: e.clientX, y: e.clientY };
    });
    frame.addEventListener("pointermove", (e) => {
      if (held && e.buttons) {
        frame.classList.add("held");
        view.move(e.clientX - held.x, e.clientY - held.y);
        held = { x: e.clientX, y: e.clientY };
      }
    });
    ["pointerup", "pointerleave"].forEach((name) => frame.addEventListener(name, () => {
      held = null;
      frame.classList.remove("held");
    }));
    frame.addEventListener("wheel", (e) => {
      if (e.ctrlKey || e.metaKey) { // the wheel alone scrolls the page
        e.preventDefault();
        const box = frame.getBoundingClientRect();
        view.zoomBy(Math.exp(-e.deltaY / 300), e.clientX - box.left, e.clientY - box.top);
      }
    }, { passive: false });
    frame.addEventListener("keydown", (e) => {
      const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      if (moves[e.key]) {
        view.move(...moves[e.key]);
      } else if (e.key === "+" || e.key === "=") {
        view.zoom(1.25);
      } else if (e.key === "-") {
        view.zoom(.8);
      } else if (e.key === "0") {
        view.fit(true);
      } else {
        return;
      }
      e.preventDefault();
    });
  }

  function describe(joint, plan) {
    const parts = [joint.name, joint.op, joint.shape];
    (joint.tasks || []).forEach((t) => parts.push(plan[t].task + ": " + plan[t].choice));
    return parts.filter((part) => part).join(" · ");
  }

  function key(name, text) {
    return make("li", {}, makeSvg("svg", { width: 12, height: 12, "aria-hidden": "true" },
      makeSvg("rect", { class: name, width: 12, height: 12, rx: 2 })), text);
  }

  function searchBox(graph, nodes, pick, count) {
    const input = make("input", { type: "search", placeholder: "Find a joint or tensor", "aria-label": "Find a joint or tensor by name" });
    let found = [], at = -1;
    input.addEventListener("input", () => {
      const text = input.value.toLowerCase();
      found = [];
      at = -1;
      graph.joints.forEach((joint, i) => {
        const is = text !== "" && (joint.name.toLowerCase().includes(text) || joint.op.includes(text));
        nodes[i].classList.toggle("found", is);
        if (is) {
          found.push(i);
        }
      });
      count.textContent = text === "" ? "" : found.length + " found" + (found.length > 0 ? ", Enter goes to the next" : "");
    });
    input.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && found.length > 0) {
        at = (at + (e.shiftKey ? found.length - 1 : 1)) % found.length;
        pick(found[at], true);
      }
    });
    return input;
  }

  function drawGraph(figure, record) {
    const graph = record.graph, plan = record.plan || [];
    const drawing = makeSvg("g", {});
    const frame = makeSvg("svg", { class: "frame", tabindex: 0, role: "application",
      "aria-label": "The network with its plan. Arrow keys move, plus and minus zoom, 0 shows all." });
    const text = make("p", { class: "picked-text", "aria-live": "polite" }, "Choose a joint to see what the plan does there.");
    const count = make("span", { class: "count", role: "status" });
    const nodes = graph.joints.map((joint) => nodeOf(joint, plan));
    const view = makeView(frame, drawing, graph);
    function pick(i, isCentered) {
      nodes.forEach((node, k) => node.classList.toggle("picked", k === i));
      text.textContent = describe(graph.joints[i], plan);
      if (isCentered) {
        view.center(graph.joints[i]);
      }
    }
    graph.edges.forEach(([from, to]) => drawing.append(edgeOf(graph.joints[from], graph.joints[to])));
    nodes.forEach((node, i) => {
      node.addEventListener("click", () => pick(i, false));
      drawing.append(node);
    });
    frame.append(drawing);
    const button = (name, what, run) => {
      const b = make("button", { type: "button", "aria-label": what, title: what }, name);
      b.addEventListener("click", run);
      return b;
    };
    figure.append(
      make("div", { class: "tools" }, searchBox(graph, nodes, pick, count), button("+", "Zoom in", () => view.zoom(1.25)),
           button("−", "Zoom out", () => view.zoom(.8)), button("All", "Show all of it", () => view.fit(true)), count),
      frame, text,
      make("ul", { class: "keys" }, key("w2", "up to 3 bits"), key("w4", "4 or 5"), key("w6", "6 or 7"), key("w8", "8"), key("w16", "more"),
           make("li", {}, "W weights, A activations; drag moves, Ctrl and the wheel zoom")));
    listen(frame, view);
    view.fit(false);
  }

  // ---- The page -------------------------------------------------------------------------------

  function drawFigure(figure, record) {
    const drawers = {
      "best-trials": () => drawBest(figure, record, "trial"),
      "best-time": () => drawBest(figure, record, "seconds"),
      "tradeoff": () => drawTradeoff(figure, record),
      "layers": () => drawLayers(figure, record),
      "effects": () => drawEffects(figure, record),
      "speed": () => drawSpeed(figure, record, "trials_per_s", "trials a second"),
      "reuse": () => drawSpeed(figure, record, "reuse", "reuse"),
      "graph": () => drawGraph(figure, record),
      "compare-trials": () => drawCompared(figure, data.records),
      "compare-fronts": () => drawFronts(figure, data.records),
    };
    drawers[figure.dataset.chart]();
  }

  // Figures that are drawn already stay, unless all are to be drawn anew.
  function drawAll(isAnew) {
    if (isAnew) {
      charts.forEach((chart) => chart.destroy());
      charts = [];
    }
    document.querySelectorAll("figure[data-chart]").forEach((figure) => {
      const article = figure.closest("article");
      const record = data.records[Number(article.id.slice(1))];
      const isGraph = figure.dataset.chart === "graph";
      if (isAnew && !isGraph) {
        figure.replaceChildren();
      }
      if (figure.childElementCount === 0) {
        drawFigure(figure, record);
      }
    });
  }

  // A table that a chart stands for is closed; without one it stays open.
  function closeTables(root) {
    if (typeof Chart === "undefined") {
      return;
    }
    root.querySelectorAll("details.table").forEach((details) => {
      details.open = false;
    });
  }

  function read(from) {
    const element = from.getElementById("data");
    return element ? element.textContent : "";
  }

  function paper(is) {
    document.documentElement.classList.toggle("paper", is);
    if (is) {
      document.querySelectorAll("details").forEach((details) => {
        details.dataset.was = details.open ? "1" : "";
        details.open = true;
      });
    } else {
      document.querySelectorAll("details").forEach((details) => {
        details.open = details.dataset.was === "1";
      });
    }
    if (data) {
      drawAll(true);
    }
  }

  // ---- A page that is served ------------------------------------------------------------------

  // Takes the sections of a newer page; what the reader has opened, scrolled and moved stays.
  function take(newer) {
    document.querySelectorAll("main > article").forEach((article) => {
      const other = newer.getElementById(article.id);
      if (!other) {
        return;
      }
      const opened = [...article.querySelectorAll("details")].map((d) => d.open);
      const places = [...article.querySelectorAll(".scroll")].map((s) => [s.scrollLeft, s.scrollTop]);
      const network = article.querySelector(".network");
      const fresh = document.importNode(other, true);
      const room = fresh.querySelector(".network");
      if (network && room && JSON.stringify(take.plan) === JSON.stringify(data.records.map((r) => r.plan))) {
        room.replaceWith(network);
      }
      article.replaceWith(fresh);
      closeTables(fresh);
      fresh.querySelectorAll("details").forEach((d, i) => {
        d.open = i < opened.length ? opened[i] : d.open;
      });
      fresh.querySelectorAll(".scroll").forEach((s, i) => {
        if (places[i]) {
          [s.scrollLeft, s.scrollTop] = places[i];
        }
      });
    });
  }

  async function follow(text) {
    const live = document.getElementById("live");
    for (let wait = 1500; ; ) {
      await new Promise((done) => setTimeout(done, document.hidden ? 5000 : wait));
      try {
        const answer = await fetch(location.href.split("#")[0], { cache: "no-store" });
        if (!answer.ok) {
          throw new Error(answer.statusText);
        }
        const newer = new DOMParser().parseFromString(await answer.text(), "text/html");
        const now = read(newer) || newer.querySelector("main").textContent;
        live.classList.remove("lost");
        live.textContent = "live, " + new Date().toLocaleTimeString();
        if (now !== text) {
          text = now;
          take.plan = data && data.records.map((r) => r.plan);
          data = read(newer) ? JSON.parse(read(newer)) : null;
          take(newer);
          if (data) {
            charts.forEach((chart) => chart.destroy());
            charts = [];
            drawAll(false);
          }
        }
        wait = 1500;
      } catch (error) {
        live.classList.add("lost");
        live.textContent = "the server does not answer";
        wait = 5000;
      }
    }
  }

  const text = read(document);
  document.documentElement.classList.toggle("scripted", typeof Chart !== "undefined");
  if (text) {
    data = JSON.parse(text);
    closeTables(document);
    drawAll(false);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(true));
  }
  window.addEventListener("beforeprint", () => paper(true));
  window.addEventListener("afterprint", () => paper(false));
  if (document.body.dataset.live) {
    follow(text || document.querySelector("main").textContent);
  }
})();
