// Draws a page: its figures and tables, and how it prints.

function drawFigure(figure, record) {
  const drawers = {
    "best-trials": () => drawBest(figure, record, "trial"),
    "best-time": () => drawBest(figure, record, "seconds"),
    "tradeoff": () => drawTradeoff(figure, record),
    "choices": () => drawChoices(figure, record),
    "layers": () => drawLayers(figure, record),
    "effects": () => drawEffects(figure, record),
    "importance": () => drawImportance(figure, record),
    "speed": () => drawSpeed(figure, record, "trials_per_s", "trials a second"),
    "reuse": () => drawSpeed(figure, record, "reuse", "reuse"),
    "graph": () => drawGraph(figure, record),
    "compare-trials": () => drawCompared(figure, data.records),
    "compare-fronts": () => drawFronts(figure, data.records),
    "compare-layers": () => drawLayersCompared(figure, data.records),
    "compare-graphs": () => drawPair(figure, data.records),
  };
  drawers[figure.dataset.chart]();
}

// Draws the figures that are not drawn yet, or all of them again if `isAnew`.
function drawAll(isAnew) {
  if (isAnew) {
    charts.forEach((chart) => chart.destroy());
    charts = [];
  }
  document.querySelectorAll("figure[data-chart]").forEach((figure) => {
    const article = figure.closest("article");
    const record = data.records[Number(article.id.slice(1))];
    const isGraph = figure.classList.contains("network");
    if (isAnew && !isGraph) {
      figure.replaceChildren();
    }
    if (figure.childElementCount === 0) {
      drawFigure(figure, record);
    }
  });
}

// Closes tables that repeat a chart. Without charts they remain open.
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

// ---- Start ------------------------------------------------------------------------------------

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
  follow();
}
