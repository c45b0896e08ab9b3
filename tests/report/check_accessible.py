#!/usr/bin/env python3
"""Runs axe-core over pages of `mscgym report` and the overview of `mscgym serve`, light and dark, at three widths, with
every part unfolded. There must be no serious or critical violation.

usage: check_accessible.py MSCGYM AXE

AXE is axe.min.js of the package axe-core (npm). Needs Chromium; exits with 77 without it.
"""

import base64
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests" / "serve")]
import check_page  # noqa: E402
import serving  # noqa: E402

WIDTHS = (1280, 820, 400)


def violations(tab, axe, url, width, theme, more=""):
    """The serious and critical violations: (rule, number of elements, some of them). Runs the script `more` first."""
    tab.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    tab.load(url)
    tab.ask("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    tab.ask(axe)
    tab.ask(more)
    found = tab.call("Runtime.evaluate", awaitPromise=True, returnByValue=True, expression="""
        axe.run(document, {resultTypes: ['violations']}).then(r => r.violations
          .filter(v => v.impact === 'serious' || v.impact === 'critical')
          .map(v => [v.id, v.nodes.length, v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' +
                     n.any.concat(n.all, n.none).map(c => c.message).join('; ').slice(0, 200))]))""")
    return found["result"]["value"]


def check_everywhere(tab, axe, name, url):
    wrong = 0
    for width in WIDTHS:
        for theme in ("light", "dark"):
            for rule, n, elements in violations(tab, axe, url, width, theme):
                wrong += 1
                print(f"FAILED  {name}, {width} {theme}: {rule} at {n} elements: " + " | ".join(elements), flush=True)
    print(f"{name}: {wrong} violations", flush=True)
    return wrong


def make_pages(mscgym):
    for name in ("digits.onnx", "calibration.npz", "calibration_labels.npy"):
        shutil.copy(f"{serving.DIGITS}/{name}", name)
    for agent in ("random", "auto"):
        config = serving.digits("quantize", 60, choices=[{"bits": 8}, {"bits": 6}, {"bits": 4}])
        config["workspace"] = agent
        config["quantize"]["gym"][0].update(record="r.jsonl", agent={"type": agent})
        Path(f"{agent}.json").write_text(json.dumps(config), encoding="utf-8")
        check_page.run(mscgym, "search", f"{agent}.json", "--quiet")
    check_page.run(mscgym, "report", "auto/r.jsonl", "--layers", "-o", "one.html")
    check_page.run(mscgym, "report", "auto/r.jsonl", "random/r.jsonl", "--layers", "-o", "two.html")


def check_overview(mscgym, folder, port, axe):
    with serving.Service(mscgym, folder) as service:
        client = service.client()
        for config in (serving.toy(20), serving.toy(10**6, 1000), serving.toy(20)):
            job = client.submit(config=config)
        client.cancel(job["id"])
        tab = check_page.Tab(port, "about:blank")
        tab.call("Network.enable")
        basic = base64.b64encode(f"ann:{serving.ANN}".encode()).decode()
        tab.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Basic {basic}"})
        return check_everywhere(tab, axe, "overview", service.url)


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    mscgym, axe = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2]).read_text(encoding="utf-8")
    if not check_page.find_chromium():
        print("skipped: no Chromium")
        return 77
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        make_pages(mscgym)
        with check_page.browser(folder) as port:
            if not port:
                print("skipped: Chromium does not run here")
                return 77
            bad = violations(check_page.Tab(port, "about:blank"), axe, check_page.url_of("one.html"), 820, "light",
                             "document.body.append(document.createElement('img'))")
            wrong = 0 if [rule for rule, _, _ in bad] == ["image-alt"] else 1  # an image without a text is found
            for name in ("one", "two"):
                url = check_page.url_of(f"{name}.html")
                wrong += check_everywhere(check_page.Tab(port, url), axe, name, url)
            wrong += check_overview(mscgym, folder, port, axe)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
