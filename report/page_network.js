// Draws the network and a plan's choices in it.

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
  const side = isLong ? NODE.width * .62 : 0; // passes the joints in between
  const middle = (y2 - y1) / 2;
  return makeSvg("path", { class: "edge", d: isLong
    ? "M" + x1 + " " + y1 + "C" + (x1 + side) + " " + (y1 + 30) + " " + (x2 + side) + " " + (y2 - 30) + " " + x2 + " " + y2
    : "M" + x1 + " " + y1 + "C" + x1 + " " + (y1 + middle) + " " + x2 + " " + (y2 - middle) + " " + x2 + " " + y2 });
}

// The visible part of the drawing: `view` has its top centre and the pixels per unit.
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
    if (e.ctrlKey || e.metaKey) { // the wheel without Ctrl scrolls the page
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
  const parts = [joint.name, joint.op, joint.shape && "output " + joint.shape, joint.details];
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
