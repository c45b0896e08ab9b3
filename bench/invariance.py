#!/usr/bin/env python3
"""Checks that trials do not depend on the instruction set or integer unit that computes them.

    invariance.py MSCGYM [--json FILE] [--trials 200] [--target generic] [MODEL ...]

One search runs with all instruction sets of the machine. It is then repeated from its header and
RECORD.params, so that scales and references are the same, with oneDNN limited to each instruction
set. On digits and on a generated network whose sums are
all integers, every trial line must be the same except for `measured`. On networks with float
joints, losses must agree within the noise of the winner. Exits with 1 if they do not.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy

import common
import networks

ISAS = ("AVX512_CORE_AMX", "AVX512_CORE_VNNI", "AVX512_CORE", "AVX2_VNNI", "AVX2")
CHOICES = [{"bits": b} for b in (8, 6, 5, 4, 3)]
GENERATED = "all integers"
EXACT = ("digits", GENERATED)
AGENTS = {  # if lines are equal, the agent may depend on losses
    True: ({"type": "evolutionary", "population": 16}, {"size_ratio": {"max": 0.2}}),
    False: ({"type": "random"}, None),
}


class Comparison:
    def __init__(self, mscgym, folder, name, trials, target):
        self.mscgym, self.name, self.is_exact = mscgym, name, name in EXACT
        self.folder = os.path.join(folder, name.replace(" ", "_"))
        os.makedirs(self.folder)
        if name == GENERATED:
            model = os.path.join(self.folder, "model.onnx")
            shape = networks.integers(model)
            values = numpy.random.RandomState(2).uniform(0, 1, (16, *shape)).astype(numpy.float32)
        else:
            model = common.model_path(name)
            values = common.inputs(name, 32 if name == "digits" else 4)
        agent, bounds = AGENTS[self.is_exact]
        self.search = common.Search(mscgym, self.folder, model, values, CHOICES, agent,
                                    trials if self.is_exact else min(trials, 24), bounds,
                                    parallel=16, target=target)
        self.search.run()
        self.expected = self.lines()
        self.numerics = common.Run(self.search.record).numerics
        with open(self.search.record) as file:
            self.header = file.readline()
        self.noise = self.find_noise()

    def lines(self):
        text = subprocess.run([self.mscgym, "show", self.search.record, "--canonical"], check=True,
                              capture_output=True, text=True).stdout
        return [line for line in text.splitlines() if json.loads(line)["kind"] == "trial"]

    def find_noise(self):
        text = subprocess.run(self.search.command("--json"), check=True, capture_output=True,
                              text=True).stdout
        reports = json.loads(text)
        winner = (reports[0] if isinstance(reports, list) else reports)["winner"]
        return (winner.get("examined") or {}).get("noise", 0.0)

    def again(self, isa):
        """The numerics id and the lines of a search under an instruction set, with the same parameters."""
        workspace = os.path.dirname(self.search.record)
        params = self.search.record + ".params"
        kept = os.path.join(self.folder, "params")
        shutil.copy(params, kept)
        shutil.rmtree(workspace)
        os.makedirs(workspace)
        shutil.copy(kept, params)
        with open(self.search.record, "w") as file:
            file.write(self.header)
        result = subprocess.run(self.search.command("--accept-new-numerics"), capture_output=True,
                                text=True, env=dict(os.environ, ONEDNN_MAX_CPU_ISA=isa))
        if result.returncode != 0:
            return None, result.stderr.strip()
        with open(self.search.record) as file:
            segments = [line for line in map(json.loads, file) if line["kind"] == "segment"]
        return (segments[-1]["numerics"] if segments else self.numerics), self.lines()

    def difference(self, lines):
        """The number of lines that differ, and the largest relative difference of losses."""
        pairs = list(zip(self.expected, lines))
        unequal = sum(a != b for a, b in pairs) + abs(len(self.expected) - len(lines))
        most = 0.0
        for a, b in pairs:
            a, b = (json.loads(line) for line in (a, b))
            if a["choices"] == b["choices"] and a["state"] == b["state"] == "complete":
                x, y = (t["metrics"]["distill_loss"] for t in (a, b))
                most = max(most, abs(x - y) / max(x, 1e-30))
        return unequal, most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--json")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--target", default="generic")
    options = parser.parse_intermixed_args()
    print(common.machine())
    rows, failed = [], False
    print("| network | instruction set | numerics | lines | unequal | greatest difference of loss "
          "| noise | |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="bench_invariance_") as folder:
        for name in options.models or [*EXACT, "mobilenet_v2", "ocr-rec"]:
            if name not in EXACT and not common.available(name):
                continue
            comparison = Comparison(options.mscgym, folder, name, options.trials,
                                    options.target)
            for isa in ISAS:
                numerics, lines = comparison.again(isa)
                if numerics is None:
                    print(f"| {name} | {isa} | failed: {lines} |")
                    failed = True
                    continue
                unequal, most = comparison.difference(lines)
                good = unequal == 0 if comparison.is_exact else most <= comparison.noise
                failed = failed or not good
                print(f"| {name} | {isa} | {numerics} | {len(lines)} | {unequal} | {most:.2e} | "
                      f"{comparison.noise:.2e} | {'as it should be' if good else 'WRONG'} |",
                      flush=True)
                rows.append({"bench": "invariance", "model": name, "agent": isa, "peer": numerics,
                             "ours": len(lines) - unequal, "theirs": len(lines),
                             "ratio": (len(lines) - unequal) / len(lines)})
                common.save_rows(options.json, rows)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
