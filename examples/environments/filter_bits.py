#!/usr/bin/env python3
"""An environment as a program: it finds the number of bits that a digital filter needs.

A low-pass filter of three second-order sections runs in fixed point. The choices are the numbers of bits to
which each section's coefficients and output are rounded. The metric `distill_loss` is the mean square of the
difference from the floating-point output, relative to the mean square of that output. The exact cost is the
area of the multipliers, bits times bits.

mscgym starts it because the configuration says

    "env": {"type": "process", "command": ["python3", "filter_bits.py"]}

and exchanges JSON with it, one object per line. Messages for people go to standard error. Equal choices must
always give equal metrics, because a search resumes and is verified by repeating trials. To search with it:

    mscgym search filter_bits.json
"""
import json
import math
import random
import sys

WIDTHS = [16, 12, 10, 8, 6, 4]
# b0, b1, b2, a1, a2 of a Butterworth filter of sixth order at 0.2 of the sampling frequency.
SECTIONS = [
    (0.1801, 0.3601, 0.1801, -0.3221, 0.0424),
    (0.2066, 0.4131, 0.2066, -0.3695, 0.1958),
    (0.2772, 0.5545, 0.2772, -0.4960, 0.6049),
]


def make_signal(n):
    noise = random.Random(1)
    return [0.4 * math.sin(0.11 * i) + 0.3 * math.sin(0.9 * i) + 0.2 * noise.uniform(-1, 1)
            for i in range(n)]


def round_to(value, bits, largest):
    """Rounds `value` to a fixed-point number of `bits` bits between -largest and largest."""
    step = largest / 2 ** (bits - 1)
    return max(-largest, min(largest - step, math.floor(value / step + 0.5) * step))


def run(signal, widths):
    """Filters the signal. `widths`: bits of each section's coefficients and output; None: floating point."""
    for i, coefficients in enumerate(SECTIONS):
        b0, b1, b2, a1, a2 = coefficients if widths is None else (
            round_to(c, widths[2 * i], 1.0) for c in coefficients)
        x1 = x2 = y1 = y2 = 0.0
        output = []
        for x in signal:
            y = b0 * x + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
            if widths is not None:
                y = round_to(y, widths[2 * i + 1], 2.0)
            x1, x2, y1, y2 = x, x1, y, y1
            output.append(y)
        signal = output
    return signal


class FilterBits:
    def __init__(self, params):
        self.signal = make_signal(int(params.get("samples", 400)))
        self.expected = run(self.signal, None)
        self.power = sum(y * y for y in self.expected)

    def space(self):
        """Describes the tasks, the measured metrics, and the exact costs."""
        tasks = [{"name": f"section_{i}/{part}", "choices": [str(w) for w in WIDTHS],
                  "features": [i, int(part == "output")]}
                 for i in range(len(SECTIONS)) for part in ("coefficients", "output")]
        area = [{"scale": 5, "factors": [{"task": 2 * i, "values": WIDTHS},
                                         {"task": 2 * i + 1, "values": WIDTHS}]}
                for i in range(len(SECTIONS))]
        return {"version": 1, "features": ["section", "is_output"], "tasks": tasks,
                "metrics": [{"name": "distill_loss",
                             "help": "squared error of the filtered signal, relative to its power"}],
                "costs": [{"name": "area", "unit": "bit^2", "terms": area,
                           "help": "area of the multipliers"}],
                "reference": {"distill_loss": 0}}

    def evaluate(self, choices):
        found = run(self.signal, [WIDTHS[choice] for choice in choices])
        moved = sum((y - z) ** 2 for y, z in zip(self.expected, found))
        return {"metrics": {"distill_loss": moved / self.power}}


def answer(message):
    print(json.dumps(message), flush=True)


def main():
    environment = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["method"] == "init":
            environment = FilterBits(message["params"])
            answer(environment.space())
        elif message["method"] == "evaluate":
            for i, trial in enumerate(message["trials"]):
                answer({"trial": i, **environment.evaluate(trial["choices"])})
        elif message["method"] == "done":
            break


if __name__ == "__main__":
    main()
