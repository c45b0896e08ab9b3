// Updates a served page when its records change. What the reader does is kept.

// Elements of a page that the reader can use, in document order.
const USABLE = "a, button, input, select, summary, pre, [tabindex]";
// A field in use is not replaced for this many milliseconds after the last input.
const PATIENCE = 10000;
let usedAt = 0;

function isInUse() {
  return document.activeElement.matches("main input, main select") && Date.now() - usedAt < PATIENCE;
}

function placeOfFocus() {
  const article = document.activeElement.closest("main > article");
  return article && [article.id, [...article.querySelectorAll(USABLE)].indexOf(document.activeElement)];
}

function focusAt([id, index]) {
  const article = document.getElementById(id);
  const element = article && article.querySelectorAll(USABLE)[index];
  if (element) {
    element.focus({ preventScroll: true });
  }
}

function searchAgain(inputs, words) {
  inputs.forEach((input, i) => {
    if (words[i] && input.value !== words[i]) { // the network was drawn again
      input.value = words[i];
      input.dispatchEvent(new Event("input"));
    }
  });
}

// Replaces the page's sections by those of a newer page. Opened details and scopes, scroll positions,
// and a network whose plan is unchanged are kept.
function replaceArticles(newer, isSamePlan) {
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
    if (network && room && isSamePlan) {
      room.replaceWith(network);
    } else if (network && room) {
      room.openScopes = network.openScopes;
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

// Takes a newer page and keeps what the reader has opened, scrolled, moved, chosen or searched for.
function take(newer) {
  const plans = () => data && JSON.stringify(data.records.map((r) => r.plan));
  const before = plans(), place = placeOfFocus();
  const words = [...document.querySelectorAll(".network input")].map((input) => input.value);
  data = read(newer) ? JSON.parse(read(newer)) : null;
  replaceArticles(newer, plans() === before);
  charts.forEach((chart) => chart.destroy());
  charts = [];
  if (data) {
    drawAll(false);
  }
  searchAgain(document.querySelectorAll(".network input"), words);
  if (place) {
    focusAt(place);
  }
}

// Shows the state and the time of the update. The text of the state changes only with the state,
// because screen readers announce each change.
function tell(trouble) {
  const live = document.getElementById("live"), state = trouble || "live";
  live.parentElement.classList.toggle("lost", trouble !== "");
  if (live.textContent !== state) {
    live.textContent = state;
  }
  document.getElementById("live-at").textContent = trouble ? "" : new Date().toLocaleTimeString();
}

// Fetches the current page; `trouble` describes a failure, or is empty.
async function ask() {
  try {
    const answer = await fetch(location.href.split("#")[0], { cache: "no-store" });
    return answer.ok ? { page: new DOMParser().parseFromString(await answer.text(), "text/html"), trouble: "" }
      : { trouble: "the page could not be made" };
  } catch (error) {
    return { trouble: "the server does not answer" };
  }
}

function contentOf(page) {
  return read(page) || page.querySelector("main").textContent;
}

async function follow() {
  let content = contentOf(document), wait = 1500;
  ["keydown", "pointerdown", "input"].forEach((name) => document.addEventListener(name, () => {
    usedAt = Date.now();
  }, true));
  for (;;) {
    await new Promise((done) => setTimeout(done, document.hidden ? 5000 : wait));
    const newer = await ask();
    tell(newer.trouble);
    wait = newer.page ? 1500 : 5000;
    if (newer.page && contentOf(newer.page) !== content && !isInUse()) {
      content = contentOf(newer.page);
      take(newer.page);
    }
  }
}
