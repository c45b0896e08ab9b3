#!/usr/bin/env python3
"""Opens pages of `mscgym report` in a browser. No error is on the console; charts and the network are
drawn; markup in names is shown as text; pages work in dark mode, printed, and without scripts; a
served page follows its record without a reload.

usage: check_page.py MSCGYM FILES

FILES is tests/cli/files. Needs Chromium, which is driven by its DevTools protocol; exits with 77
without it.
"""

import base64
import contextlib
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

WAIT_S = 120  # far longer than any step takes
TOY = """{{"workspace": "{name}", "verbose": "error", "gym": [{{"record": "toy.jsonl",
  "env": {{"type": "toy", "tasks": 6, "choices": 3, "seed": 1, "interaction": 0.5, "delay_us": 500{more}}},
  "agent": {{"type": "evolutionary", "population": 8}}, "budget": {{"trials": {trials}}},
  "seed": {seed}, "parallel": 4}}]}}"""


class Tab:
    """A page in the browser, driven through the WebSocket of its DevTools."""

    def __init__(self, port, url):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            address = json.load(answer)["webSocketDebuggerUrl"]
        self.buffer, self.n, self.errors = b"", 0, []
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        key = base64.b64encode(os.urandom(16)).decode()
        path = address.split(str(port), 1)[1]
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
                            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
                            "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(4096)
        self.buffer = self.buffer.split(b"\r\n\r\n", 1)[1]
        for domain in ("Runtime", "Log", "Page"):
            self.call(domain + ".enable")
        self.load(url)

    def take(self, n):
        while len(self.buffer) < n:
            self.buffer += self.socket.recv(1 << 16)
        taken, self.buffer = self.buffer[:n], self.buffer[n:]
        return taken

    def receive(self):
        n = self.take(2)[1] & 127
        if n >= 126:
            n = struct.unpack(">H" if n == 126 else ">Q", self.take(2 if n == 126 else 8))[0]
        message = json.loads(self.take(n))
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(values["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.errors.append(values["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            self.errors.append(str(values["args"])[:500])
        return message

    def call(self, method, **values):
        self.n += 1
        text = json.dumps({"id": self.n, "method": method, "params": values}).encode()
        mask = os.urandom(4)
        head = bytes([0x81, 0x80 | len(text)]) if len(text) < 126 else \
            bytes([0x81, 0xfe]) + struct.pack(">H", len(text)) if len(text) < 1 << 16 else \
            bytes([0x81, 0xff]) + struct.pack(">Q", len(text))
        self.socket.sendall(head + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(text)))
        while True:
            message = self.receive()
            if message.get("id") == self.n:
                return message.get("result", message)

    def ask(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
        return result.get("value")

    def wait(self, expression):
        """Waits until the expression is true."""
        end = time.monotonic() + WAIT_S
        while not self.ask(expression):
            if time.monotonic() > end:
                raise AssertionError(f"never came: {expression}")
            time.sleep(0.05)

    def load(self, url):
        self.call("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")


def run(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def search(mscgym, name, trials, seed=3, more=""):
    Path(f"{name}.json").write_text(TOY.format(name=name, trials=trials, seed=seed, more=more), encoding="utf-8")
    run(mscgym, "search", f"{name}.json")
    return f"{name}/toy.jsonl"


def url_of(path):
    return Path(path).resolve().as_uri()


def check(what, is_so):
    print(("ok: " if is_so else "FAILED: ") + what)
    if not is_so:
        raise AssertionError(what)


def check_choices(tab):
    """Each line of the parallel coordinates crosses the axes where the trial's choices and metrics are; lines of one
    choice are spread by at most a twentieth of the axis.
    """
    wrong = tab.ask("""(() => {
      const record = data.records[0], trials = record.trials, points = trials.points;
      const picture = document.querySelector('svg.choices'), name = record.numbers.objectives[0].metric;
      const paths = [...picture.querySelectorAll('path.best, path.other')];
      const axis = picture.querySelector('path.axis').getAttribute('d').match(/[0-9.]+/g).map(Number);
      const length = axis[2] - axis[0], wrong = [];
      for (const path of paths) {
        const id = Number(path.querySelector('title').textContent.match(/trial ([0-9]+)/)[1]);
        const i = points.id.indexOf(id), xs = path.getAttribute('d').match(/[0-9.]+/g).map(Number).filter((v, k) => k % 2 === 0);
        trials.tasks.forEach((task, k) => {
          const share = task.labels.length < 2 ? .5 : task.choices[i] / (task.labels.length - 1);
          if (Math.abs((xs[k] - axis[0]) / length - share) > .05) { wrong.push([id, task.task]); }
        });
      }
      const best = paths[paths.length - 1].querySelector('title').textContent;
      const values = points.metrics[name].filter((v, i) => points.state[i] === 0);
      if (!best.endsWith(': ' + shown(Math.min(...values)))) { wrong.push(best); }
      return paths.length < 10 ? ['few lines'] : wrong;
    })()""")
    check("choices of trials are drawn where they are", wrong == [])


def check_charts(port, page, has_charts):
    tab = Tab(port, url_of(page))
    n = tab.ask("document.querySelectorAll('canvas').length")
    check("charts are drawn", n >= 5 if has_charts else n == 0)
    if has_charts:
        check("tables behind charts are closed",
              tab.ask("[...document.querySelectorAll('details.table')].every(d => !d.open)"))
    background = tab.ask("getComputedStyle(document.body).backgroundColor")
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    tab.wait(f"getComputedStyle(document.body).backgroundColor !== {json.dumps(background)}")
    check("dark", True)
    pdf = tab.call("Page.printToPDF")
    check("printed", len(base64.b64decode(pdf["data"])) > 10000)
    check_choices(tab)
    check("no error", tab.errors == [])
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.load(url_of(page) + "?")
    check("without scripts every table is open",
          tab.ask("[...document.querySelectorAll('details')].every(d => d.open)") and
          tab.ask("document.querySelectorAll('td').length") > 50)


def check_compared(port, page, n_lines, note):
    """Lines differ not only in colour. Records with another objective are named but not drawn."""
    tab = Tab(port, url_of(page))
    figure = "document.querySelector('[data-chart=compare-trials]')"
    dashes = f"Chart.getChart({figure}.querySelector('canvas')).data.datasets.map(s => s.borderDash.join())"
    check("a line for each record of one objective", tab.ask(f"{dashes}.length") == n_lines)
    check("lines have dashes of their own", tab.ask(f"new Set({dashes}).size") == n_lines)
    check("records of another objective are named",
          tab.ask(f"[...{figure}.querySelectorAll('.note')].map(p => p.textContent).join()") == note)
    check("the quickest is not uniform", tab.ask(
        "uniform({numbers: {objectives: [{metric: 'x'}], baselines: ["
        "{state: 'complete', label: 'the quickest', metrics: {x: 1}},"
        "{state: 'complete', label: '8', metrics: {x: 2}}]}}).label") == "8" and
        tab.ask("planName('the quickest') + ', ' + planName('8')") == "the quickest, uniform 8")
    check("no error", tab.errors == [])


def check_learnt(mscgym, port):
    """What the agent learnt, with long names of tasks: as text, and within pages of any width."""
    name = "<b>encoder</b>" + "_0123456789" * 12
    tasks = [{"name": f"{name}.{t}", "choices": ["8", "4", "2"]} for t in range(5)]
    alone = [[0, 1, 2]] * 5
    Path("pairs.json").write_text(json.dumps({
        "schema": "mscgym.table.1", "tasks": tasks,
        "metrics": [{"name": "distill_loss", "alone": alone,
                     "pairs": [{"tasks": [1, 3], "values": [[0, 0, 0], [0, 0, 0], [0, 0, 4]]}]}],
        "costs": [{"name": "size_bytes", "alone": [[8, 4, 2]] * 5}]}), encoding="utf-8")
    Path("learnt.json").write_text(json.dumps({"workspace": "learnt", "verbose": "error", "gym": [{
        "record": "r.jsonl", "env": {"type": "table", "file": "pairs.json", "bounds": {"size_bytes": {"max": 24}}},
        "agent": {"type": "auto"}, "budget": {"trials": 60}, "parallel": 4}]}), encoding="utf-8")
    run(mscgym, "search", "learnt.json", "--quiet")
    run(mscgym, "report", "learnt/r.jsonl")
    tab = Tab(port, url_of("learnt/r.html"))
    said = tab.ask("[...document.querySelectorAll('.learnt li')].map(item => item.textContent)")
    check("a pair is named", len(said) == 1 and ".1 at 2 and <b>" in said[0] and ".3 at 2 act together" in said[0])
    for width in (1280, 820, 400):
        tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        tab.wait("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        check(f"no part is wider than a page of {width}",
              tab.ask("[...document.querySelectorAll('.learnt li')].every(i => i.scrollWidth <= i.clientWidth)"))
    check("no error", tab.errors == [])


def make_hostile(mscgym, files):
    for name in ("tiny.onnx", "inputs.npz"):
        shutil.copy(Path(files) / name, name)
    run(mscgym, "graph", "tiny.onnx", "-o", "plain.json")
    names = {"flatten": "<img src=x onerror=window.hurt=1>", "fc": "x" * 10000,
             "conv": "</script><script>window.hurt=1</script>"}
    lines = Path("plain.json").read_text(encoding="utf-8").splitlines()
    for i, line in enumerate(lines):
        for old, new in names.items():
            if "optype" not in line:
                lines[i] = lines[i].replace(f'"{old}"', f'"{new}"').replace(f'"{old}:', f'"{new}:')
    Path("bad.json").write_text("\n".join(lines), encoding="utf-8")
    shutil.copy("plain.safetensors", "bad.safetensors")
    Path("bad_search.json").write_text(json.dumps({
        "workspace": "bad", "verbose": "error", "model": "bad.json", "dataset": {"inputs": "inputs.npz"},
        "quantize": {"target": "generic", "gym": [{"record": "r.jsonl", "budget": {"trials": 4}}]}}),
        encoding="utf-8")
    run(mscgym, "search", "bad_search.json", "--quiet")
    run(mscgym, "report", "bad/r.jsonl", "-o", "bad.html")


def check_hostile(port):
    tab = Tab(port, url_of("bad.html"))
    check("markup in names stays text", tab.ask("window.hurt === undefined") and
          tab.ask("document.querySelectorAll('img').length") == 0)
    check("the network is drawn", tab.ask("document.querySelectorAll('.node').length") == 5)
    tab.ask("const i = document.querySelector('.network input'); i.value = 'onerror';"
            "i.dispatchEvent(new Event('input')); i.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
    check("a name is found", tab.ask("document.querySelectorAll('.node.found').length") == 1 and
          "onerror" in tab.ask("document.querySelector('.picked-text').textContent"))
    tab.ask("const page = document.documentElement.cloneNode(true);"
            "page.querySelectorAll('figure').forEach(figure => figure.replaceChildren());"
            "const newer = new DOMParser().parseFromString(page.outerHTML, 'text/html');"
            "const other = JSON.parse(newer.getElementById('data').textContent);"
            "other.records[0].plan[0].choice = 'another';"
            "newer.getElementById('data').textContent = JSON.stringify(other);"
            "window.old = document.querySelector('.network input'); take(newer)")
    check("and found again in a newer plan",
          tab.ask("document.querySelector('.network input') !== old && "
                  "document.querySelectorAll('.node.found').length") == 1)
    check("no part is wider than the page",
          tab.ask("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))
    check("no error", tab.errors == [])


def check_scopes(port):
    """Scopes of the network open and close; a joint that is found opens what hides it."""
    tab = Tab(port, url_of("bad.html"))
    tab.ask("""(() => {
      const names = ['in', '/a/b/c', '/a/b/d', '/a/e', '/f/g', 'out'];
      const joints = names.map((name, i) => ({ name: name, op: 'x', shape: '1', details: '', column: .5, layer: i,
                                               tasks: i === 2 ? [0] : [] }));
      window.graph = { joints: joints, edges: [[0, 1], [1, 2], [2, 3], [0, 3], [3, 4], [4, 5]], layers: 6, columns: 1 };
      window.figure = document.createElement('figure');
      document.querySelector('article').append(figure);
      drawGraph(figure, { graph: graph, plan: [{ task: 't', choice: '4', bits: 4, kind: 'weight' }] });
      window.press = (text) =>
        [...figure.querySelectorAll('button')].find((b) => b.textContent.startsWith(text)).click();
    })()""")
    shown = ("[...figure.querySelectorAll('.node')].map(n => n.querySelector('title').textContent).join(' ') + ' '"
             " + figure.querySelectorAll('.edge').length")
    check("a small network is open", tab.ask(shown) == "in /a/b/c /a/b/d /a/e /f/g out 6")
    tab.ask("press('Close all')")
    check("scopes are closed", tab.ask(shown) == "in /a /f/g out 3")
    check("a scope says what is in it", "3 joints · 4 bits" in tab.ask("figure.querySelector('.scope').textContent"))
    heights = "[...figure.querySelectorAll('.node')].map(n => Number(n.getAttribute('transform').match(/ (.*)\\)/)[1]))"
    check("each item is below those before it", tab.ask(f"{heights}.every((y, i, all) => i === 0 || y > all[i - 1])"))
    tab.ask("figure.querySelector('.scope').dispatchEvent(new MouseEvent('dblclick'))")
    check("a double click opens a scope", tab.ask(shown) == "in /a/b /a/e /f/g out 5")
    tab.ask("press('Close all')")
    tab.ask("const i = figure.querySelector('input'); i.value = '/d'; i.dispatchEvent(new Event('input'));"
            "window.hidden = figure.querySelectorAll('.node.found').length;"
            "i.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
    check("a scope with what is found is marked", tab.ask("hidden") == 1)
    check("what hides it is opened", tab.ask(shown) == "in /a/b/c /a/b/d /a/e /f/g out 6" and
          tab.ask("figure.querySelector('.picked title').textContent") == "/a/b/d")
    tab.ask("press('Close /a/b')")
    check("the scope of a joint closes", tab.ask(shown) == "in /a/b /a/e /f/g out 5")
    tab.ask("const newer = document.createElement('figure'); newer.openScopes = figure.openScopes;"
            "figure.after(newer); drawGraph(newer, { graph: graph, plan: [] }); figure.remove(); window.figure = newer")
    check("a newer picture has the same scopes", tab.ask(shown) == "in /a/b /a/e /f/g out 5")
    tab.ask("figure.querySelector('.scope').dispatchEvent(new MouseEvent('click')); press('Open /a/b')")
    check("and opens", tab.ask(shown) == "in /a/b/c /a/b/d /a/e /f/g out 6")
    check("a scope that a path leaves and enters again is never closed", tab.ask("""(() => {
      const joints = ['/k/x', 'y', '/k/z', '/k/l/m', '/k/l/n'].map((name) => ({ name: name }));
      return [...findScopes({ joints: joints, edges: [[0, 1], [1, 2], [2, 3], [3, 4]] })].join();
    })()""") == "/k/l")
    check("no error", tab.errors == [])


def check_pair(port):
    """Two networks next to each other move together, and a joint that is chosen on one side is chosen on both."""
    tab = Tab(port, url_of("bad.html"))
    tab.ask("""(() => {
      const graph = { layers: 3, columns: 1, edges: [[0, 1], [1, 2]], joints: ['/a/b/c', '/a/b/d', 'out'].map((name, i) =>
        ({ name: name, op: 'x', shape: '1', details: '', column: .5, layer: i, tasks: i === 1 ? [0] : [] })) };
      const record = (name, bits) => ({ name: name, graph: graph, plan: [{ task: 't', choice: bits, bits: Number(bits), kind: 'weight' }] });
      window.figure = document.createElement('figure');
      document.querySelector('article').append(figure);
      drawPair(figure, [record('one', '4'), record('two', '6'), record('three', '8')]);
      window.sides = () => [...figure.querySelectorAll('.side')];
    })()""")
    picked = "sides().map(s => s.querySelector('.picked-text').textContent).join()"
    tab.ask("sides()[1].querySelectorAll('.node')[1].dispatchEvent(new MouseEvent('click'))")
    said = tab.ask(picked)
    check("a joint is chosen on both sides", "t: 4" in said and "t: 6" in said and
          tab.ask("figure.querySelectorAll('.node.picked').length") == 2)
    tab.ask("sides()[0].querySelectorAll('button')[0].click()")
    places = "sides().map(s => s.querySelector('.frame > g').getAttribute('transform'))"
    check("both sides move together", tab.ask(f"new Set({places}).size") == 1)
    tab.ask("[...sides()[0].querySelectorAll('button')].find(b => b.textContent === 'Close all').click()")
    check("scopes close on both sides", tab.ask("figure.querySelectorAll('.scope').length") == 2)
    tab.ask("const s = sides()[1].querySelector('select'); s.value = 2; s.dispatchEvent(new Event('change'))")
    tab.ask("[...sides()[0].querySelectorAll('button')].find(b => b.textContent === 'Open all').click();"
            "sides()[0].querySelectorAll('.node')[1].dispatchEvent(new MouseEvent('click'))")
    said = tab.ask(picked)
    check("another record can be chosen", "t: 4" in said and "t: 8" in said)
    check("no error", tab.errors == [])


def check_scale(port):
    """The scale of the best so far fits what is learnt after the first minute, without leading cliffs."""
    tab = Tab(port, url_of("bad.html"))

    def kept(seconds, values, elapsed, n=1000):
        points = [{"x": s, "y": v, "trial": int(n * s / elapsed)} for s, v in zip(seconds, values)]
        points.append({"x": elapsed, "y": values[-1], "trial": n})
        record = {"trials": {"n": n, "elapsed_s": elapsed, "best": {"seconds": seconds}}}
        return tab.ask(f"lateSteps({json.dumps(record)}, {json.dumps(points)}).map(p => p.y).join()")

    hours = [1, 2, 10, 50, 100, 9000]
    check("values after the first minute", kept(hours, [100, 90, 70, 20, 18, 15], 36000) == "20,18,15,15")
    check("steps over nine tenths of the rest are left out", kept([100, 200, 300, 400], [1000, 10, 9, 8], 3600) == "10,9,8,8")
    check("two values remain", kept([100, 200], [1000, 10], 3600) == "1000,10,10")
    check("a short search", kept([0.1, 0.2, 0.5], [9, 8, 7], 1) == "9,8,7,7")


def wait_for_trials(tab, n):
    tab.wait(f"document.querySelector('.meta').textContent.includes('{n} trials')")


def check_followed(tab, mscgym, has_charts):
    """An update keeps what the reader opened, chose and focused. It waits while a list is in
    use.
    """
    tab.ask("window.mark = 1; document.querySelector('details').open = true;"
            "window.said = 0; new MutationObserver(() => said++).observe(document.querySelector('[role=status]'),"
            " {childList: true, characterData: true, subtree: true});"
            "window.table = document.querySelectorAll('.scroll')[1]; table.focus()")
    if has_charts:
        tab.ask("window.select = document.querySelector('.chart select'); select.selectedIndex = 1;"
                "window.chosen = select.value; select.dispatchEvent(new Event('change')); table.focus()")
    search(mscgym, "live", 60)
    wait_for_trials(tab, 63)
    check("follows its record without being loaded again",
          tab.ask("window.mark === 1 && document.querySelector('details').open"))
    check("the focus stays", tab.ask("document.activeElement === document.querySelectorAll('.scroll')[1]"
                                     " && document.activeElement !== table"))
    check("nothing is said while nothing changes but numbers", tab.ask("said === 0"))
    if has_charts:
        check("a chosen cost stays",
              tab.ask("document.querySelector('.chart select').value === chosen && chosen !== ''"))
        tab.ask("document.querySelector('.chart select').focus();"
                "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {bubbles: true}))")
        search(mscgym, "live", 80)
        time.sleep(4)
        check("a list that is in use is not taken away",
              tab.ask("document.querySelector('.meta').textContent.includes('63 trials')"))
        tab.ask("document.activeElement.blur()")
        wait_for_trials(tab, 83)


def check_lost(tab, server, record):
    """The page says so if it cannot be made, or if the server is gone."""
    state = "document.querySelector('[role=status]').textContent"
    whole = Path(record).read_bytes()
    Path(record).write_bytes(b"no record" + whole)
    tab.wait(f"{state} === 'the page could not be made'")
    check("a page that cannot be made is not live", tab.ask("document.querySelector('.live.lost') !== null"))
    Path(record).write_bytes(whole)
    tab.wait(f"{state} === 'live' && document.querySelector('.live.lost') === null")
    server.terminate()
    tab.wait(f"{state} === 'the server does not answer'")
    check("a server that is gone is told", tab.ask("document.querySelector('.live.lost') !== null"))


def check_live(mscgym, port, has_charts):
    record = search(mscgym, "live", 20)
    server = subprocess.Popen([mscgym, "report", record, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        tab = Tab(port, server.stdout.readline().split("page: ")[1].strip())
        check("begins as it is", "23 trials" in tab.ask("document.querySelector('.meta').textContent"))
        check_followed(tab, mscgym, has_charts)
        check("no error", tab.errors == [])
        check_lost(tab, server, record)
    finally:
        server.terminate()
        server.wait()


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def browser(folder):
    """The port of the browser's DevTools, or None if the browser does not start."""
    process = subprocess.Popen(
        [find_chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
         f"--user-data-dir={folder}/browser", "about:blank"],
        stderr=subprocess.PIPE, text=True)
    try:
        found = (re.search(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line) for line in process.stderr)
        yield next((int(match[1]) for match in found if match), None)
    finally:
        process.terminate()
        process.wait()


def check_pages(mscgym, files, port):
    first = search(mscgym, "a", 40)
    second = search(mscgym, "b", 60, 4)
    run(mscgym, "report", first)
    page = Path("a/toy.html").read_text(encoding="utf-8")
    has_charts = "built without Chart.js" not in page
    check_charts(port, "a/toy.html", has_charts)
    run(mscgym, "report", first, second, "-o", "both.html")
    check_charts(port, "both.html", has_charts)
    other = search(mscgym, "c", 40, 5, ', "objectives": ["size_bytes"]')
    run(mscgym, "report", first, second, other, "-o", "three.html")
    if has_charts:
        check_compared(port, "both.html", 2, "")
        check_compared(port, "three.html", 2, "Not drawn, because their objective differs: toy.")
    check_learnt(mscgym, port)
    make_hostile(mscgym, files)
    check_hostile(port)
    check_scopes(port)
    check_pair(port)
    if has_charts:
        check_scale(port)
    check_live(mscgym, port, has_charts)


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    mscgym, files = (str(Path(word).resolve()) for word in sys.argv[1:])
    if not find_chromium():
        print("skipped: no Chromium")
        return 77
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        with browser(folder) as port:
            if not port:
                print("skipped: Chromium does not run here")
                return 77
            check_pages(mscgym, files, port)
    return 0


if __name__ == "__main__":
    sys.exit(main())
