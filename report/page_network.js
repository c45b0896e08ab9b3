// Draws the network and a plan's choices in it.

// Networks with more joints are shown with closed scopes, but at least LEAST_ITEMS joints and scopes.
const MOST_OPEN = 80, LEAST_ITEMS = 12;
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

function bodyOf(item, shape) {
  const x = item.column * NODE.x + 8, y = item.layer * NODE.y + 8;
  const node = makeSvg("g", { class: "node " + shape, transform: "translate(" + x + " " + y + ")" });
  if (shape === "scope") { // a second sheet behind the first
    node.append(makeSvg("rect", { class: "body", x: 4, y: 4, width: NODE.width, height: NODE.height, rx: 6 }));
  }
  node.append(makeSvg("rect", { class: "body", width: NODE.width, height: NODE.height, rx: 6 }));
  return node;
}

function swatch(bits) {
  return makeSvg("rect", { class: "swatch " + bitsClass(bits), x: 0, y: 0, width: 6, height: NODE.height, rx: 3 });
}

function nodeOf(joint, plan) {
  const node = bodyOf(joint, "joint");
  const rows = (joint.tasks || []).map((t) => plan[t]).filter((row) => row.bits !== undefined);
  const row = rows.find((r) => r.kind !== "activation") || rows[0];
  if (row) {
    node.append(swatch(row.bits));
  }
  const op = joint.op.replace(/^(nn|msc)\./, "");
  node.append(makeSvg("text", { x: 14, y: 16 }, short(op, 18)));
  node.append(makeSvg("text", { x: 14, y: 31, class: "plan" }, short(planText(joint, plan).join(" · ") || joint.shape, 22)));
  node.append(makeSvg("title", {}, joint.name));
  return node;
}

function nodeOfScope(scope, graph, plan) {
  const node = bodyOf(scope, "scope");
  const bits = scope.joints.flatMap((i) => graph.joints[i].tasks || []).map((t) => plan[t].bits).filter((b) => b !== undefined);
  if (bits.length > 0) {
    node.append(swatch(bits.reduce((a, b) => a + b) / bits.length));
  }
  const range = bits.length === 0 ? "" : " · " + shown(Math.min(...bits)) + (Math.min(...bits) < Math.max(...bits) ? "–" + shown(Math.max(...bits)) : "") + " bits";
  node.append(makeSvg("text", { x: 14, y: 16 }, short(scope.name.split(/[/.]/).pop(), 18)));
  node.append(makeSvg("text", { x: 14, y: 31, class: "plan" }, scope.joints.length + " joints" + range));
  node.append(makeSvg("title", {}, scope.name));
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

// ---- Scopes -----------------------------------------------------------------------------------

// The scopes of a joint from the outermost inwards: "/layer1", "/layer1/layer1.0" for
// "/layer1/layer1.0/conv1/Conv". Names without "/" are divided at dots.
function scopesOf(name) {
  const mark = name.includes("/") ? "/" : ".";
  const scopes = [];
  for (let at = name.indexOf(mark, 1); at > 0; at = name.indexOf(mark, at + 1)) {
    scopes.push(name.slice(0, at));
  }
  return scopes;
}

// True if no path leaves the joints and comes back: only such scopes are closed, because what comes
// before them and what comes after them can then be told apart.
function isConvex(inside, graph, parents) {
  const after = new Array(graph.joints.length).fill(false); // joints that a path from inside reaches outside
  return graph.joints.every((joint, i) => {
    const isIn = inside.has(i);
    const comesBack = parents[i].some((p) => after[p]);
    after[i] = !isIn && (comesBack || parents[i].some((p) => inside.has(p)));
    return !(isIn && comesBack);
  });
}

// The scopes that can be closed: those with at least two joints, and convex.
function findScopes(graph) {
  const inside = new Map(), parents = graph.joints.map(() => []);
  graph.edges.forEach(([from, to]) => parents[to].push(from));
  graph.joints.forEach((joint, i) => scopesOf(joint.name).forEach((scope) => inside.set(scope, (inside.get(scope) || new Set()).add(i))));
  return new Set([...inside].filter(([, joints]) => joints.size > 1 && isConvex(joints, graph, parents)).map(([scope]) => scope));
}

// What is drawn if the scopes in `open` are open: items, each a joint or a closed scope with its
// joints, and edges between them. Places follow from those of the joints: a closed scope takes the
// mean, and each item is below the items before it.
function groupJoints(graph, scopes, open) {
  const items = [], itemOf = [], byScope = new Map();
  graph.joints.forEach((joint, i) => {
    const closed = scopesOf(joint.name).find((scope) => scopes.has(scope) && !open.has(scope));
    if (closed === undefined) {
      itemOf.push(items.push({ joint: i, joints: [i] }) - 1);
    } else if (byScope.has(closed)) {
      items[byScope.get(closed)].joints.push(i);
      itemOf.push(byScope.get(closed));
    } else {
      byScope.set(closed, items.push({ name: closed, joints: [i] }) - 1);
      itemOf.push(byScope.get(closed));
    }
  });
  const seen = new Set(), edges = [];
  graph.edges.forEach(([from, to]) => {
    const edge = [itemOf[from], itemOf[to]], text = edge.join(" ");
    if (edge[0] !== edge[1] && !seen.has(text)) {
      seen.add(text);
      edges.push(edge);
    }
  });
  return { items: items, edges: edges, itemOf: itemOf, layers: 0, columns: 0 };
}

// Opens the largest scopes until there are some items to see.
function chooseOpen(graph, scopes) {
  const open = new Set();
  for (;;) {
    const items = groupJoints(graph, scopes, open).items;
    const closed = items.filter((item) => item.name).sort((a, b) => b.joints.length - a.joints.length);
    if (closed.length === 0 || items.length >= LEAST_ITEMS) {
      return open;
    }
    open.add(closed[0].name);
  }
}

// Gives each item a layer and a column.
function placeItems(drawn, graph) {
  const mean = (item, what) => item.joints.reduce((sum, i) => sum + graph.joints[i][what], 0) / item.joints.length;
  if (drawn.items.every((item) => item.joint !== undefined)) { // nothing is closed
    drawn.items.forEach((item) => Object.assign(item, { column: graph.joints[item.joint].column, layer: graph.joints[item.joint].layer }));
    Object.assign(drawn, { layers: graph.layers, columns: graph.columns });
    return;
  }
  drawn.items.forEach((item) => Object.assign(item, { depth: mean(item, "layer"), across: mean(item, "column"), layer: 0 }));
  const order = drawn.items.map((item, i) => i).sort((a, b) => drawn.items[a].depth - drawn.items[b].depth || a - b);
  const place = new Map(order.map((i, at) => [i, at]));
  order.forEach((i) => drawn.edges.forEach(([from, to]) => {
    if (from === i && place.get(to) > place.get(from)) {
      drawn.items[to].layer = Math.max(drawn.items[to].layer, drawn.items[i].layer + 1);
    }
  }));
  const rows = [];
  drawn.items.forEach((item) => (rows[item.layer] = rows[item.layer] || []).push(item));
  drawn.columns = Math.max(...rows.map((row) => row.length));
  drawn.layers = rows.length;
  rows.forEach((row) => row.sort((a, b) => a.across - b.across).forEach((item, k) => {
    item.column = (drawn.columns - row.length) / 2 + k;
  }));
}

// The visible part of the drawing: `view` has its top centre and the pixels per unit. `moved` gets
// each new view.
function makeView(frame, drawing, drawn, moved) {
  const view = { x: 0, y: 0, zoom: 1 };
  function look(at) {
    Object.assign(view, at);
    drawing.setAttribute("transform", "translate(" + view.x + " " + view.y + ") scale(" + view.zoom + ")");
  }
  function show() {
    look(view);
    moved(view);
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
    const width = drawn().columns * NODE.x, height = drawn().layers * NODE.y;
    view.zoom = Math.min(isWhole ? 1.2 : 1, box.width / width, isWhole ? box.height / height : 1);
    view.zoom = Math.max(view.zoom, isWhole ? .05 : .35);
    view.x = (box.width - width * view.zoom) / 2;
    view.y = isWhole ? (box.height - height * view.zoom) / 2 : 4;
    show();
  }
  function center(item) {
    const box = frame.getBoundingClientRect();
    view.zoom = Math.max(view.zoom, .8);
    view.x = box.width / 2 - (item.column * NODE.x + NODE.x / 2) * view.zoom;
    view.y = box.height / 2 - (item.layer * NODE.y + NODE.y / 2) * view.zoom;
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
  return { zoomBy: zoomBy, zoom: zoom, fit: fit, center: center, move: move, look: look };
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

function percent(share) {
  return Number((100 * share).toPrecision(2)) + " %";
}

function describe(joint, record) {
  const parts = [joint.name, joint.op, joint.shape && "output " + joint.shape, joint.details];
  (joint.tasks || []).forEach((t) => parts.push(record.plan[t].task + ": " + record.plan[t].choice));
  const layer = record.layers && record.layers.layers.find((row) => row.joint === joint.name);
  if (layer && layer.error !== undefined) {
    parts.push("error after it " + percent(layer.error));
  }
  return parts.filter((part) => part).join(" · ");
}

function describeScope(scope, graph, record) {
  const ops = new Map();
  scope.joints.forEach((i) => ops.set(graph.joints[i].op, (ops.get(graph.joints[i].op) || 0) + 1));
  const most = [...ops].sort((a, b) => b[1] - a[1]).slice(0, 6).map(([op, n]) => n + " × " + op);
  const names = new Set(scope.joints.map((i) => graph.joints[i].name));
  const errors = ((record.layers && record.layers.layers) || []).filter((row) => names.has(row.joint) && row.error !== undefined);
  const worst = errors.reduce((a, b) => (a && a.error >= b.error ? a : b), null);
  return [scope.name, scope.joints.length + " joints: " + most.join(", "),
          worst && "largest error " + percent(worst.error) + " after " + worst.joint].filter((part) => part).join(" · ");
}

function key(name, text) {
  return make("li", {}, makeSvg("svg", { width: 12, height: 12, "aria-hidden": "true" },
    makeSvg("rect", { class: name, width: 12, height: 12, rx: 2 })), text);
}

function searchBox(graph, show, pick, count) {
  const input = make("input", { type: "search", placeholder: "Find a joint or tensor", "aria-label": "Find a joint or tensor by name" });
  let at = -1;
  input.addEventListener("input", () => {
    const text = input.value.toLowerCase();
    const found = graph.joints.map((joint, i) => i).filter((i) => text !== "" &&
      (graph.joints[i].name.toLowerCase().includes(text) || graph.joints[i].op.includes(text)));
    at = -1;
    show(found);
    count.textContent = text === "" ? "" : found.length + " found" + (found.length > 0 ? ", Enter goes to the next" : "");
    input.found = found;
  });
  input.addEventListener("keydown", (e) => {
    const found = input.found || [];
    if (e.key === "Enter" && found.length > 0) {
      at = (at + (e.shiftKey ? found.length - 1 : 1)) % found.length;
      pick(found[at]);
    }
  });
  return input;
}

// The drawing and its state: the open scopes, the joints that were found, and the picked item.
function makeDrawing(graph, record, parts) {
  const plan = record.plan || [];
  const scopes = findScopes(graph);
  const first = parts.figure.openScopes || (graph.joints.length > MOST_OPEN ? chooseOpen(graph, scopes) : scopes);
  const state = { open: new Set(first), found: [], picked: null };
  let drawn = null, nodes = [];
  function mark() {
    const found = new Set(state.found.map((i) => drawn.itemOf[i]));
    nodes.forEach((node, k) => {
      node.classList.toggle("found", found.has(k));
      node.classList.toggle("picked", k === state.picked);
    });
  }
  function show() {
    drawn = groupJoints(graph, scopes, state.open);
    placeItems(drawn, graph);
    nodes = drawn.items.map((item) => (item.joint === undefined ? nodeOfScope(item, graph, plan)
      : nodeOf(Object.assign({}, graph.joints[item.joint], { column: item.column, layer: item.layer }), plan)));
    nodes.forEach((node, k) => {
      node.addEventListener("click", () => pick(k));
      node.addEventListener("dblclick", () => drawn.items[k].name && setOpen(drawn.items[k].name, true));
    });
    parts.figure.openScopes = state.open; // for a newer page
    parts.drawing.replaceChildren(...drawn.edges.map(([from, to]) => edgeOf(drawn.items[from], drawn.items[to])), ...nodes);
    mark();
  }
  function scopeButton(name, isOpen) {
    const b = make("button", { type: "button" }, (isOpen ? "Open " : "Close ") + short(name, 40));
    b.addEventListener("click", () => setOpen(name, isOpen));
    return b;
  }
  function pick(k) {
    tell(k);
    parts.changed({ open: state.open, joint: graph.joints[drawn.items[k].joints[0]].name });
  }
  function tell(k) {
    const item = drawn.items[k];
    state.picked = k;
    mark();
    const inner = item.joint === undefined ? null : graph.joints[item.joint];
    const outer = inner ? scopesOf(inner.name).filter((scope) => scopes.has(scope)).pop() : null;
    parts.text.replaceChildren(inner ? describe(inner, record) : describeScope(item, graph, record), " ",
      ...(item.name ? [scopeButton(item.name, true)] : outer ? [scopeButton(outer, false)] : []));
  }
  function setOpen(name, isOpen) {
    const joint = graph.joints.findIndex((j) => scopesOf(j.name).includes(name));
    if (isOpen) {
      state.open.add(name);
    } else {
      [...state.open].filter((scope) => scope === name || scopesOf(scope + "/.").includes(name)).forEach((scope) => state.open.delete(scope));
    }
    show();
    pick(drawn.itemOf[joint]);
    parts.view().center(drawn.items[drawn.itemOf[joint]]);
  }
  function setAll(isOpen) {
    state.open = new Set(isOpen ? scopes : []);
    state.picked = null;
    show();
    parts.changed({ open: state.open });
    parts.view().fit(false);
  }
  function find(found) {
    state.found = found;
    mark();
  }
  function go(joint) { // opens what hides the joint
    scopesOf(graph.joints[joint].name).forEach((scope) => state.open.add(scope));
    show();
    pick(drawn.itemOf[joint]);
    parts.view().center(drawn.items[drawn.itemOf[joint]]);
  }
  // Opens the same scopes as another drawing, and picks the joint of the same name.
  function follow(other) {
    const joint = graph.joints.findIndex((j) => j.name === other.joint);
    state.open = new Set([...other.open].filter((scope) => scopes.has(scope)));
    state.picked = null;
    show();
    if (joint >= 0) {
      tell(drawn.itemOf[joint]);
    }
  }
  show();
  return { drawn: () => drawn, find: find, go: go, setAll: setAll, follow: follow, hasScopes: scopes.size > 0 };
}

// Draws a record's network. `others` are drawings that move, open and pick along; it joins them.
function drawGraph(figure, record, others) {
  const graph = record.graph;
  const frame = makeSvg("svg", { class: "frame", tabindex: 0, role: "application",
    "aria-label": "The network with its plan. Arrow keys move, plus and minus zoom, 0 shows all." });
  const count = make("span", { class: "count", role: "status" });
  const along = (what, value) => (others || []).forEach((other) => other !== me && other[what](value));
  const parts = { figure: figure, drawing: makeSvg("g", {}), view: () => view, changed: (state) => along("follow", state),
    text: make("p", { class: "picked-text", "aria-live": "polite" }, "Choose a joint to see what the plan does there.") };
  const network = makeDrawing(graph, record, parts);
  const view = makeView(frame, parts.drawing, network.drawn, (at) => along("look", at));
  const me = { look: view.look, follow: network.follow };
  frame.append(parts.drawing);
  const button = (name, what, run) => {
    const b = make("button", { type: "button", "aria-label": what, title: what }, name);
    b.addEventListener("click", run);
    return b;
  };
  const ofScopes = network.hasScopes ? [button("Open all", "Open all scopes", () => network.setAll(true)),
                                        button("Close all", "Close all scopes", () => network.setAll(false))] : [];
  figure.append(
    make("div", { class: "tools" }, searchBox(graph, network.find, network.go, count), button("+", "Zoom in", () => view.zoom(1.25)),
         button("−", "Zoom out", () => view.zoom(.8)), button("All", "Show all of it", () => view.fit(true)), ...ofScopes, count),
    frame, parts.text,
    make("ul", { class: "keys" }, key("w2", "up to 3 bits"), key("w4", "4 or 5"), key("w6", "6 or 7"), key("w8", "8"), key("w16", "more"),
         make("li", {}, "W weights, A activations; drag moves, Ctrl and the wheel zoom" + (network.hasScopes ? ", a double click opens a scope" : ""))));
  listen(frame, view);
  view.fit(false);
  if (others) {
    others.push(me);
  }
}

// Draws two networks next to each other; the reader chooses of which records.
function drawPair(figure, records) {
  const usable = records.filter((r) => r.graph.joints);
  const chosen = figure.chosen || [0, 1]; // kept when a page is updated
  figure.chosen = chosen;
  figure.replaceChildren();
  const together = [];
  chosen.forEach((at, side) => {
    const select = make("select", { "aria-label": "Record on the " + (side === 0 ? "left" : "right") });
    usable.forEach((r, i) => {
      const option = make("option", { value: i }, r.name);
      option.selected = i === at;
      select.append(option);
    });
    select.addEventListener("change", () => {
      chosen[side] = Number(select.value);
      drawPair(figure, records);
      figure.querySelectorAll("select")[side].focus();
    });
    const room = make("div", { class: "side" }, select);
    figure.append(room);
    drawGraph(room, usable[at], together);
  });
}
