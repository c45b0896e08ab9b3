// Shared by the scripts of a page. They draw a report's charts and network from the document in the
// page, and keep a served page up to date. Data of the document becomes text or numbers, never
// markup. The build joins the scripts (report/CMakeLists.txt).
"use strict";

const SVG = "http://www.w3.org/2000/svg";
let charts = [];
let data = null;

// ---- Helpers ----------------------------------------------------------------------------------

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

function faded(text, share) { // the color "#rrggbb" with opacity `share`
  return text + Math.round(share * 255).toString(16).padStart(2, "0");
}

function shown(value) {
  if (value === null || value === undefined || !isFinite(value)) {
    return "–";
  }
  return Number.isInteger(value) ? String(value) : Number(value.toPrecision(4)).toString();
}

// Divides by 1,000 until at most three digits precede the point.
function scaled(value, units, digits) {
  let i = 0;
  for (; i + 1 < units.length && Math.abs(value) >= 999.5; i++) {
    value /= 1000;
  }
  return Number(value.toPrecision(digits)) + units[i];
}

// A value of a metric with its unit, as results/units.c writes it.
function quantity(metric, value, digits) {
  const units = { bytes: [Math.abs(value) === 1 ? " byte" : " bytes", " KB", " MB", " GB"], us: [" µs", " ms", " s"],
                  count: ["", " thousand", " million", " billion", " trillion"] };
  const unit = data.units[metric];
  if (value === null || value === undefined || !isFinite(value) || unit === undefined) {
    return shown(value);
  }
  return unit === "share" ? Number((100 * value).toPrecision(digits || 4)) + " %" : scaled(value, units[unit], digits || 3);
}

function metricName(metric) { // the name for people, or the metric's own
  return data.names[metric] || metric;
}

function short(name, length) {
  return name.length <= length ? name
    : name.slice(0, Math.ceil(length / 3)) + "…" + name.slice(-Math.floor(2 * length / 3) + 1);
}

// ---- Charts -----------------------------------------------------------------------------------

function scale(title, more) {
  return Object.assign({
    title: { display: true, text: title, color: color("quiet") },
    ticks: { color: color("quiet"), maxTicksLimit: 8, maxRotation: 0 },
    grid: { color: color("line"), borderColor: color("line") },
  }, more);
}

// The scale of a metric. It is logarithmic if all values are positive and span more than a factor of
// ten.
function scaleOf(metric, values) {
  const real = values.filter((v) => v !== null && isFinite(v));
  const least = Math.min(...real), greatest = Math.max(...real);
  const isLog = real.length > 1 && least > 0 && greatest > 10 * least;
  const axis = scale(metricName(metric), { type: isLog ? "logarithmic" : "linear" });
  axis.ticks.callback = function (value) {
    const digit = Math.round(value / Math.pow(10, Math.floor(Math.log10(value))));
    const isDense = greatest > 2000 * least;
    return !isLog || digit === 1 || (!isDense && (digit === 2 || digit === 5))
      ? data.units[metric] ? quantity(metric, value, 3) : Number(value.toPrecision(3)).toString() : "";
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

function clock(seconds) { // the unit for a time axis of this length
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
