#!/usr/bin/env python3
"""How good the results of agents on real networks are, and how soon they are reached: losses after the
same number of evaluated trials, and the time until a search reaches the final loss of another
revision's default search.

    quality_networks.py MSCGYM [NETWORK...] --csv FILE.csv [--then MSCGYM] [--agents A,B,...] [--trials 150]
                        [--shares 0.3,0.5] [--seeds 0,1,2] [--bits 8,6,4] [--race JSON] [--optuna PYTHON]
                        [--budget 500] [--rounds 8,32] [--times 2] [--samples N] [--clock batches] [--table]

Networks and samples are those of methods_data.py. Searches are over widths, with ranges from least
to greatest, an observer that is the same in all revisions. size_bytes is bounded at each share of
the way from the cheapest uniform plan to the most expensive one. Agents are those of quality.py
with --parallel 8, on one thread. A seed changes the agent's random numbers, not the samples. For
each network, share and seed, one search of each kind runs in turn:

    then                        --then's program: `evolutionary` with its defaults, 500 trials in rounds of 32
    auto                        --budget trials. Its loss after --trials is compared with the others', and
                                counts as best within the noise of its winner (median over seeds)
    auto_raced, auto_raced_32   with a race, in rounds of 8 and 32 (--rounds), and --times as many trials, most
                                of which are stopped
    others                      until --trials are evaluated, including baselines

Each search is added to the CSV when it is done. Searches in the CSV are not repeated (other options
need another file), and --table only shows them. Times are those of the records. With `--clock
batches` they are the work of trials, in units of full trials, so that neither other programs nor
the agent's own time count. A search "reached" a loss with the first trial within a millionth of it.
A search that never did counts with its whole time.
"""
import argparse
import csv
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import common
import methods_data
import quality
import racing

NETWORKS = {  # samples, batch size
    "digits": (256, 16),
    "fashion": (512, 16),
    "mlsd-tiny": (8, 1),
    "ocr-rec": (4, 1),
}
AGENTS = ("auto", "evolutionary", "grid_search", "greedy", "random", "optuna_tpe", "one_plus_one")
THEN = {"agent": {"type": "evolutionary"}, "parallel": 32, "trials": 500}
RACED = {"auto_raced": 8, "auto_raced_32": 32}
COLUMNS = ("network", "share", "bound", "search", "seed", "evaluated", "lines", "loss", "final_loss", "seconds",
           "noise", "dearest_loss", "curve")
TARGET = "onnx"  # the name in every revision of the target that supports any bits
NEAR = 1e-6


def kinds(options):
    """The kinds of searches: {name: program, agent, rounds, trials, and whether it runs to its end}."""
    found = {"then": dict(THEN, mscgym=options.then)} if options.then else {}
    for name, agent in options.agents.items():
        own = {"mscgym": options.mscgym, "agent": agent, "parallel": options.parallel}
        if name == "auto":
            found[name] = dict(own, trials=options.budget)
            found.update((raced, dict(own, parallel=parallel, trials=options.times * options.budget,
                                      more={"race": options.race}))
                         for raced, parallel in RACED.items() if parallel in options.rounds)
        else:
            found[name] = dict(own, stop=options.trials)
    return found


def evaluated(path):
    """The number of evaluated trials in the record so far."""
    if not os.path.exists(path):
        return 0
    with open(path, "rb") as file:
        lines = file.read().rpartition(b"\n")[0].splitlines()[1:]
    trials = (line for line in map(json.loads, lines) if line["kind"] == "trial")
    return sum(quality.is_counted(line, "evaluated") for line in trials)


def run(options, name, kind, bound, seed):
    """Report, trials and curve of a search. A search with `stop` is interrupted after that many
    evaluated trials.
    """
    samples, batch = NETWORKS[name]
    samples = options.samples or samples
    choices = [{"bits": bits, "observer": "minmax"} for bits in options.bits]
    with tempfile.TemporaryDirectory(prefix="bench_quality_", dir=quality.MEMORY) as folder:
        search = common.Search(kind["mscgym"], folder, common.model_path(name),
                               methods_data.calibration(name, 0)[:samples], choices, kind["agent"],
                               kind.get("trials", 100 * kind.get("stop", 0)),
                               bound and {"size_bytes": {"max": bound}}, batch, kind["parallel"], TARGET,
                               more=dict(kind.get("more", {}), seed=seed))
        process = subprocess.Popen(search.command("--threads", "1", "--json"), stdout=subprocess.PIPE,
                                   text=True, env=dict(os.environ, OMP_NUM_THREADS="1",
                                                       PYTHONPATH=quality.PYTHON))
        while "stop" in kind and process.poll() is None and evaluated(search.record) < kind["stop"]:
            time.sleep(0.05)
        if "stop" in kind:
            process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
        if process.returncode not in (0, 4):  # 4: interrupted
            sys.exit(f"{name}: a search by {kind['agent']} ended with {process.returncode}")
        curve, lines = racing.curve(search.record, samples // batch if options.clock == "batches" else None)
        return json.loads(output)[0], [line for line in lines if line["kind"] == "trial"], curve


def dearest(trials):
    return max((t for t in trials if "baseline" in t), key=lambda t: t["metrics"]["size_bytes"])


def bounds(options, name):
    """The bound on size_bytes for each share."""
    random = {"mscgym": options.mscgym, "agent": {"type": "random"}, "parallel": 1,
              "stop": len(options.bits) + 1}  # uniform plans are evaluated first
    _, trials, _ = run(options, name, random, None, 0)
    sizes = [t["metrics"]["size_bytes"] for t in trials if "baseline" in t]
    return {share: round(min(sizes) + share * (max(sizes) - min(sizes))) for share in options.shares}


def improvements(curve):
    """The points of the curve that improved the loss, as text."""
    kept = [point for i, point in enumerate(curve) if i == 0 or point[1] < curve[i - 1][1]]
    return " ".join(f"{elapsed:.3f}:{loss:.8g}" for elapsed, loss in kept)


def measure(options, name, kind, bound, seed):
    report, trials, curve = run(options, name, kind, bound, seed)
    found = quality.best_after(trials, "distill_loss", 1, [options.trials], "evaluated")
    examined = (report["winner"] or {}).get("examined", {})
    return {"evaluated": sum(quality.is_counted(line, "evaluated") for line in trials),
            "lines": len(trials), "loss": found[options.trials], "final_loss": curve[-1][1] if curve else None,
            "seconds": trials[-1]["measured"]["elapsed_s"], "noise": examined.get("noise"),
            "dearest_loss": dearest(trials)["metrics"]["distill_loss"], "curve": improvements(curve)}


# ---- Rows -------------------------------------------------------------------------------------

def number(text):
    return float(text) if text else None


def load(path):
    """{(network, share, search, seed): row}"""
    rows = {}
    if os.path.exists(path):
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                row.update((key, number(row[key])) for key in COLUMNS if key not in
                           ("network", "search", "curve"))
                row["curve"] = [tuple(map(float, point.split(":"))) for point in row["curve"].split()]
                rows[row["network"], row["share"], row["search"], int(row["seed"])] = row
    return rows


def append(path, row):
    is_new = not os.path.exists(path)
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def measure_all(options):
    rows = load(options.csv)
    for name in options.networks:
        most = None
        for seed in options.seeds:
            for share in options.shares:
                for search, kind in kinds(options).items():
                    if (name, share, search, seed) in rows:
                        continue
                    most = most or bounds(options, name)
                    append(options.csv, {"network": name, "share": share, "bound": most[share],
                                         "search": search, "seed": seed,
                                         **measure(options, name, kind, most[share], seed)})


# ---- Tables -----------------------------------------------------------------------------------

def reached(row, loss):
    """The time at which the loss was reached, or None."""
    return next((elapsed for elapsed, best in row["curve"] if best <= loss * (1 + NEAR)), None)


def median(rows, key):
    """The median of a figure. A search that found nothing within the bound counts as worst."""
    return statistics.median(float("inf") if row[key] is None else row[key] for row in rows)


def cells_of(rows):
    """{(network, share): {search: rows by seed}}"""
    cells = {}
    for (network, share, search, _), row in sorted(rows.items(), key=lambda item: item[0][3]):
        cells.setdefault((network, share), {}).setdefault(search, []).append(row)
    return cells


def show_losses(cells, trials):
    names = [name for name in quality.AGENTS if any(name in cell for cell in cells.values())]
    print(f"distill_loss after {trials} trials, medians over seeds\n")
    print("| network, share | noise | " + " | ".join(names) + " | auto / best | |")
    print("|---|---|" + "---|" * len(names) + "---|---|")
    for (network, share), cell in cells.items():
        if "auto" not in cell:
            continue
        losses = {name: median(cell[name], "loss") for name in names if name in cell}
        best = min(losses.values())
        noise = statistics.median(row["noise"] or 0.0 for row in cell["auto"])
        ratio = losses["auto"] / best
        print(f"| {network}, {share:g} | {noise:.2g} | " +
              " | ".join(f"{losses[n]:.5g}" if n in losses else "-" for n in names) +
              f" | {ratio:.4f} | {'' if ratio <= 1 + noise else 'behind'} |")


def reach_ratio(rows, beside, loss):
    """Median over seeds of the time until `loss` was reached, divided by the whole time of `beside`."""
    return statistics.median((reached(row, loss) or row["seconds"]) / other["seconds"]
                             for row, other in zip(rows, beside))


def paired(plain, raced):
    """Pairs of rows with the same seed."""
    by_seed = {row["seed"]: row for row in plain}
    return [(by_seed[row["seed"]], row) for row in raced if row["seed"] in by_seed]


def race_ratio(plain, raced):
    """How many times sooner the race reached the worse of both final losses."""
    loss = max(plain["final_loss"], raced["final_loss"])
    return reached(plain, loss) / reached(raced, loss)


def show_times(cells):
    names = ["auto", *RACED]
    print("\ntime until the final loss of `then` (median over seeds) was reached, over the time of its search\n")
    print("| network, share | then's loss | then, s | losses agree | " + " | ".join(names) + " |")
    print("|---|---|---|---|" + "---|" * len(names))
    found = {}
    for (network, share), cell in cells.items():
        if not all(name in cell for name in ["then", *names]):
            continue
        then = cell["then"]
        loss = median(then, "final_loss")
        apart = abs(cell["auto"][0]["dearest_loss"] / then[0]["dearest_loss"] - 1)
        ratios = {name: reach_ratio(cell[name], then, loss) for name in names}
        unreached = {name: sum(reached(row, loss) is None for row in cell[name]) for name in names}
        print(f"| {network}, {share:g} | {loss:.5g} | {median(then, 'seconds'):.3g} | {apart:.1g} | " +
              " | ".join(f"{value:.3f}" + (f" ({unreached[name]} not)" if unreached.get(name) else "")
                         for name, value in ratios.items()) + " |")
        for name, value in ratios.items():
            found.setdefault(name, []).append(value)
    if found:
        print("| geometric mean | | | | " +
              " | ".join(f"{common.geometric_mean(values):.3f}" for values in found.values()) + " |")


def show_races(cells):
    print("\nhow much sooner than `auto` a race had the worse of both final losses, the median over seeds (the least "
          "and\nthe greatest), its whole time over that without, and its final loss over that without (the greatest)\n")
    names = [name for name in RACED if any(name in cell for cell in cells.values())]
    print("| network, share | seeds | " + " | ".join(f"{name} | time | loss" for name in names) + " |")
    print("|---|---|" + "---|---|---|" * len(names))
    found = {}
    for (network, share), cell in cells.items():
        if "auto" not in cell or not any(name in cell for name in names):
            continue
        columns, n_seeds = [], set()
        for name in names:
            pairs = paired(cell["auto"], cell.get(name, []))
            if not pairs:
                columns += ["-", "-", "-"]
                continue
            ratios = [race_ratio(a, b) for a, b in pairs]
            losses = [b["final_loss"] / a["final_loss"] for a, b in pairs]
            found.setdefault(name, []).append(statistics.median(ratios))
            n_seeds.add(len(pairs))
            times = [b["seconds"] / a["seconds"] for a, b in pairs]
            columns += [f"{statistics.median(ratios):.2f} ({min(ratios):.2f} … {max(ratios):.2f})",
                        f"{statistics.median(times):.2f}",
                        f"{statistics.median(losses):.3f} ({max(losses):.3f})"]
        print(f"| {network}, {share:g} | {min(n_seeds)} | " + " | ".join(columns) + " |")
    print("| geometric mean | | " +
          " | ".join(f"{common.geometric_mean(values):.2f} | | " for values in found.values()) + " |")


def parse():
    def words(kind):
        return lambda text: [kind(word) for word in text.split(",")]

    parser = argparse.ArgumentParser()
    parser.add_argument("mscgym", type=os.path.abspath)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--then", type=os.path.abspath)
    parser.add_argument("--agents", dest="names", type=words(str), default=list(AGENTS))
    parser.add_argument("--trials", type=int, default=150)
    parser.add_argument("--shares", type=words(float), default=[0.3, 0.5])
    parser.add_argument("--seeds", type=words(int), default=[0, 1, 2])
    parser.add_argument("--bits", type=words(int), default=[8, 6, 4])
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--race", type=json.loads, default=True)
    parser.add_argument("--budget", type=int, default=500)
    parser.add_argument("--rounds", type=words(int), default=list(RACED.values()))
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--clock", choices=("record", "batches"), default="record")
    parser.add_argument("--optuna")
    parser.add_argument("--csv", required=True)
    parser.add_argument("--table", action="store_true")
    return parser.parse_intermixed_args()


def main():
    options = parse()
    if not options.table:
        options.agents = quality.choose_agents(options)
        measure_all(options)
    cells = cells_of(load(options.csv))
    show_losses(cells, options.trials)
    show_times(cells)
    show_races(cells)


if __name__ == "__main__":
    main()
