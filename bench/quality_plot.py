#!/usr/bin/env python3
"""Plots the results of quality.py --csv: for each group of problems, the median regret of agents over trials.

    quality_plot.py FILE.csv -o FILE.svg [--agents A,B,...]

Needs matplotlib. There is a panel for each group, in the order of the file; values are medians over
problems of medians over seeds, as in the table of quality.py.
"""
import argparse
import statistics

import matplotlib
import quality

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "mscgym", "svg.fonttype": "none"})
from matplotlib import pyplot  # noqa: E402: the backend comes first

COLUMNS = 3
FLOOR = 1e-4  # smaller regrets are drawn at this value


def curves(rows):
    """{group: {agent: [(trials, regret)]}}"""
    cells, groups = quality.medians(rows)
    found = {}
    for (problem, budget), agents in cells.items():
        for agent, regret in agents.items():
            by_budget = found.setdefault(groups[problem], {}).setdefault(agent, {})
            by_budget.setdefault(budget, []).append(regret)
    return {group: {agent: [(budget, statistics.median(of)) for budget, of in sorted(by.items())]
                    for agent, by in agents.items()} for group, agents in found.items()}


def ticks(budgets):
    """Budgets that are far enough apart for their labels."""
    marks = []
    for n in sorted(budgets):
        if not marks or n >= 1.4 * marks[-1]:
            marks.append(n)
    return marks


def draw(found, names, path):
    n_rows = -(-len(found) // COLUMNS)
    figure, panels = pyplot.subplots(n_rows, COLUMNS, figsize=(4 * COLUMNS, 3 * n_rows),
                                     squeeze=False, sharey=True)
    for panel in panels.flat[len(found):]:
        panel.axis("off")
    for panel, (group, agents) in zip(panels.flat, found.items()):
        for i, name in enumerate(names):
            if name in agents:
                trials, regrets = zip(*agents[name])
                panel.plot(trials, [max(regret, FLOOR) for regret in regrets], marker="o",
                           markersize=4, color=f"C{i}", label=name,
                           linewidth=2.5 if name == "auto" else 1.2)
        panel.set(title=group, xscale="log", yscale="log", ylim=(FLOOR * 0.8, 1))
        panel.set_xticks([], minor=True)
        marks = ticks({n for curve in agents.values() for n, _ in curve})
        panel.set_xticks(marks, [str(n) for n in marks])
        panel.grid(alpha=0.3)
    for panel in panels[:, 0]:
        panel.set_ylabel("regret")
    figure.supxlabel("trials")
    handles = {}
    for panel in panels.flat:
        handles.update({label: handle for handle, label in zip(*panel.get_legend_handles_labels())})
    figure.legend(handles.values(), handles.keys(), loc="upper center", ncols=len(handles),
                  bbox_to_anchor=(0.5, 1.03), frameon=False)
    figure.tight_layout()
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--agents")
    options = parser.parse_args()
    rows = quality.load_csv(options.csv)
    names = options.agents.split(",") if options.agents else \
        list(dict.fromkeys(row["agent"] for row in rows))
    draw(curves(rows), names, options.output)


if __name__ == "__main__":
    main()
