// The page: its figures, its tables, what it is on paper, and following what is served.

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

// ---- A page that is served --------------------------------------------------------------------

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
