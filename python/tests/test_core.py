#!/usr/bin/env python3
"""Tests the parts of the package that need only Python, by themselves and together with mscgym.

    test_core.py MSCGYM | --installed

--installed tests the package of this Python and its program.
"""
import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
from math import inf

if sys.version_info < (3, 11):
    print("skipped: the package needs Python 3.11")
    sys.exit(0)
try:
    import unittest
except ImportError:
    print(f"skipped: there is no unittest in {sys.executable}")
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
ASKED = sys.argv.pop(1) if len(sys.argv) > 1 else "mscgym"
if ASKED != "--installed":
    PACKAGE = os.path.join(HERE, "..")
    sys.path.insert(0, PACKAGE)
    os.environ["PYTHONPATH"] = PACKAGE
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ.pop("PYTHONUNBUFFERED", None)

import mscgym  # noqa: E402
from mscgym.protocol import Child, ProtocolError  # noqa: E402

MSCGYM = mscgym.program() if ASKED in ("--installed", "mscgym") else os.path.abspath(ASKED)
INIT = {
    "method": "init", "protocol": 1, "seed": "7", "params": {"n": 2},
    "space": {"feature_names": ["elements"], "choice_feature_names": ["bits", "weight_error"],
              "tasks": [{"name": "a", "choices": ["8", "4"], "dearest_first": [0, 1], "features": [72],
                         "choice_features": [[8, 0.25], [4, None]]},
                        {"name": "b", "choices": ["8", "6", "4"], "dearest_first": [0, 1, 2], "features": [5],
                         "choice_features": [[8, 0], [6, 0], [4, 0]]}],
              "metrics": [{"name": "loss", "unit": "", "maximised": False, "exact": False},
                          {"name": "size", "unit": "bits", "maximised": False, "exact": True}],
              "costs": [{"metric": "size", "constant": 3, "terms": [
                  {"scale": 2, "factors": [{"task": 0, "values": [8, 4]}, {"task": 1, "values": [8, 6, 4]}]},
                  {"scale": 1, "factors": [{"task": 1, "values": [80, 60, 40]}]}]}],
              "baselines": [{"label": "8", "choices": [0, 0]}], "neighbours": [[0, 1]]},
    "goal": {"objectives": ["loss"], "bounds": {"size": {"max": 100}, "loss": {"min": 0}}},
}

AGENT = """
import mscgym
class Drawn(mscgym.Agent):
    def propose(self, n):
        print("talk goes to standard error")
        return [p for p in (self.draw() for _ in range(n)) if self.is_feasible(p)] or [self.draw()]
    told = 0
    def tell(self, trial, choices, outcome):
        self.told += 1
    def remarks(self):
        return [f"{self.told} trials were told", "nothing\\x07 else"]
Drawn.run()
"""

ENVIRONMENT = """
import mscgym
class Sum(mscgym.Environment):
    def space(self):
        return {"tasks": [self.task(f"t{i}", [8, 6, 4], features=[i], choice_features=[[8], [6], [None]])
                          for i in range(3)], "features": ["place"], "choice_features": ["bits"],
                "metrics": [self.metric("distill_loss"), self.metric("quality", maximised=True)],
                "costs": [self.cost("size", alone=[[8, 6, 4]] * 3, products=[(2, {0: [2, 1, 1]})])]}
    def evaluate(self, choices, bound):
        print("talk goes to standard error")
        if choices == (2, 2, 2):
            raise mscgym.Failed("too narrow")
        return {"distill_loss": sum(c * (i + 1) for i, c in enumerate(choices)) / 8, "quality": float("nan")}
Sum.run()
"""


# Reasons that are too long, or have several lines.
LONG_REASONS = """
import mscgym
class Talkative(mscgym.Environment):
    def space(self):
        return {"tasks": [self.task(f"t{i}", [8, 6]) for i in range(3)], "metrics": [self.metric("distill_loss")]}
    def evaluate(self, choices, bound):
        if sum(choices) == 2:
            raise mscgym.Failed("\u00dcbertragung: " + "x" * choices[0] + "\u00fc" * 150)
        if sum(choices) == 1:
            raise mscgym.Failed("two\\nlines")
        return {"distill_loss": 1}
Talkative.run()
"""

TOLD = """
import mscgym
class Told(mscgym.Agent):
    def propose(self, n):
        return [self.draw() for _ in range(n)]
    def tell(self, trial, choices, outcome):
        with open("told.txt", "a", encoding="utf-8") as file:
            print(trial, outcome.reason, file=file)
Told.run()
"""


def mscgym_says(*arguments, folder=None, code=0):
    process = subprocess.run([MSCGYM, *arguments], cwd=folder, capture_output=True, text=True)
    if process.returncode != code:
        raise AssertionError(f"mscgym {' '.join(arguments)} ended with {process.returncode}: "
                             f"{process.stdout}{process.stderr}")
    return process.stdout


class TestSpace(unittest.TestCase):
    def setUp(self):
        self.space = mscgym.Space.from_json(INIT["space"])
        self.goal = mscgym.Goal.from_json(INIT["goal"])

    def test_costs_are_sums_of_products(self):
        size = self.space.cost("size")
        self.assertEqual(size.value([0, 0]), 3 + 2 * 8 * 8 + 80)
        self.assertEqual(size.value([1, 2]), 3 + 2 * 4 * 4 + 40)
        self.assertIsNone(self.space.cost("loss"))

    def test_features_of_choices(self):
        self.assertEqual(self.space.choice_feature_names, ("bits", "weight_error"))
        self.assertEqual(self.space.tasks[0].choice_features, ((8, 0.25), (4, None)))

    def test_neighbours(self):
        self.assertEqual(self.space.neighbours, ((0, 1),))

    def test_violations_are_parts_of_the_limit(self):
        self.assertEqual(self.goal.exact_violation(self.space, [0, 0]), (211 - 100) / 100)
        self.assertEqual(self.goal.exact_violation(self.space, [1, 2]), 0)
        self.assertEqual(mscgym.Bound(min=4).violation(3), 0.25)
        self.assertEqual(mscgym.Bound(max=0).violation(2), 2)
        self.assertEqual(mscgym.Bound().violation(inf), 0)


class TestAgent(unittest.TestCase):
    def test_answers_as_documented(self):
        told = []

        class Fixed(mscgym.Agent):
            def propose(self, n):
                return [(0, 1), mscgym.Proposal((1, 2), parent=3, bound=0.5, probe=True)][:n]

            def left(self):
                return 9

            def tell(self, trial, choices, outcome):
                told.append((trial, choices, outcome.state, outcome.objectives, outcome.is_measured))

        agent = Fixed()
        self.assertEqual(agent.answer(INIT), {})
        self.assertEqual((agent.seed, agent.params), (7, {"n": 2}))
        self.assertEqual(agent.answer({"method": "ask", "max": 5}), {
            "proposals": [{"choices": [0, 1]}, {"choices": [1, 2], "parent": 3, "bound": 0.5, "probe": True}],
            "done": False, "left": 9})
        self.assertEqual(agent.answer({"method": "ask", "max": 0})["done"], True)
        agent.answer({"method": "tell", "trial": {"id": 4, "choices": [0, 1], "parent": -1, "bound": None},
                      "outcome": {"state": "failed", "metrics": {}, "objectives": [None], "violation": 0,
                                  "reason": "no"}})
        self.assertEqual(told, [(4, (0, 1), "failed", (None,), False)])
        self.assertIn("error", agent.answer({"method": "fly"}))
        self.assertEqual(agent.answer({"method": "remarks"}), {"remarks": []})

    def test_remarks(self):
        class Talking(mscgym.Agent):
            def remarks(self):
                return ["one", "two"]

        self.assertEqual(Talking().answer(INIT), {"remarks": True})
        self.assertEqual(Talking().answer({"method": "remarks"}), {"remarks": ["one", "two"]})


class TestEnvironment(unittest.TestCase):
    def test_answers_as_documented(self):
        class Small(mscgym.Environment):
            def space(self):
                return {"tasks": [self.task("a", [8, 4])], "metrics": [self.metric("loss")]}

            def evaluate(self, choices, bound):
                if choices[0] == 1:
                    raise mscgym.Failed("no")
                return {"loss": inf if bound else 0.5}

        environment = Small()
        space, = environment.answer({"method": "init", "params": {}})
        self.assertEqual(space["tasks"], [{"name": "a", "choices": ["8", "4"]}])
        answers = list(environment.answer({"method": "evaluate", "trials": [
            {"choices": [0]}, {"choices": [1]}, {"choices": [0], "bound": 1.0}]}))
        self.assertEqual(answers, [{"trial": 0, "metrics": {"loss": 0.5}},
                                   {"trial": 1, "state": "failed", "reason": "no"},
                                   {"trial": 2, "metrics": {"loss": None}}])


class TestWithMscgym(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.folder = cls.held.name
        for name, text in ("agent.py", AGENT), ("environment.py", ENVIRONMENT):
            with open(os.path.join(cls.folder, name), "w") as file:
                file.write(text)
        cls.command = [sys.executable, os.path.join(cls.folder, "agent.py")]
        cls.config = os.path.join(cls.folder, "search.json")
        with open(cls.config, "w") as file:
            json.dump({"workspace": ".", "verbose": "error", "gym": [{
                "record": "record.jsonl",
                "env": {"type": "process", "command": [sys.executable, "environment.py"],
                        "bounds": {"size": {"max": 20}}},
                "agent": {"type": "process", "command": [sys.executable, "agent.py"]},
                "budget": {"trials": 20}, "parallel": 4}]}, file)
        mscgym_says("search", cls.config, "--quiet")
        cls.record = os.path.join(cls.folder, "record.jsonl")

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def test_plug_ins_keep_their_contracts(self):
        for what, name in ("agents", "agent.py"), ("envs", "environment.py"):
            said = json.loads(mscgym_says(what, "--check", f"{sys.executable} {name}", "--json", folder=self.folder))
            self.assertEqual([rule for rule in said if not rule["kept"]], [])

    def test_remarks_of_a_program(self):
        report = json.loads(mscgym_says("show", self.record, "--json"))
        self.assertRegex(report["learnt"][0], r"^\d+ trials were told$")
        self.assertEqual(report["learnt"][1:], ["nothing\\x07 else"])
        replayed = json.loads(mscgym_says("show", self.record, "--phases", "--allow-plugins", "--json"))
        self.assertEqual(replayed["learnt"], report["learnt"])

    def test_record_says_what_mscgym_says(self):
        record = mscgym.Record(self.record)
        lines = [json.loads(line) for line in mscgym_says("show", self.record, "--canonical").splitlines()]
        self.assertEqual([trial.id for trial in record.trials], [line["id"] for line in lines[1:]])
        self.assertEqual(record.tasks, ["t0", "t1", "t2"])
        self.assertEqual(record.metrics, ["distill_loss", "quality", "size"])
        shown = mscgym_says("show", self.record)
        self.assertIn(f"winner: trial {record.best().id} ", shown)
        self.assertEqual(record.labels(record.best())["t1"], ["8", "6", "4"][record.best().choices[1]])
        self.assertEqual({t.baseline for t in record.trials}, {None, "8", "6", "4"})
        self.assertEqual(next(t for t in record.trials if t.choices == (2, 2, 2)).state, "failed")

    def test_record_with_a_torn_end(self):
        with open(self.record, "rb") as file:
            whole = file.read()
        n = len(mscgym.Record(self.record))
        last = whole.rstrip(b"\n").rfind(b"\n") + 1
        torn = os.path.join(self.folder, "torn.jsonl")
        for cut in (*range(last, len(whole), 37), len(whole) - 1):
            with open(torn, "wb") as file:
                file.write(whole[:cut])
            record = mscgym.Record(torn)
            self.assertEqual((len(record), record.has_torn_end), (n - 1, cut > last))
        with open(torn, "wb") as file:
            file.write(whole[:last] + b"\0" * 40 + b"\n")
        self.assertEqual(len(mscgym.Record(torn)), n - 1)
        for damaged in (b"", b"{}\n", whole[:40], whole.replace(b'"kind":"trial"', b'"kind', 1)):
            with open(torn, "wb") as file:
                file.write(damaged)
            self.assertRaises(mscgym.RecordError, mscgym.Record, torn)

    def damage(self, n, behind=0):
        """A copy of the record with n damaged lines, followed by `behind` good ones."""
        with open(self.record, "rb") as file:
            lines = file.readlines()
        first = len(lines) - behind - n
        lines[first:first + n] = [line.replace(b'"kind"', b"\0\0\0", 1) for line in lines[first:first + n]]
        path = os.path.join(self.folder, "damaged.jsonl")
        with open(path, "wb") as file:
            file.writelines(lines)
        return path, first

    def test_record_with_a_write_that_is_there_in_part(self):
        n = len(mscgym.Record(self.record))
        for n_damaged in range(1, 5):  # "parallel" lines
            path, _ = self.damage(n_damaged)
            record = mscgym.Record(path)
            self.assertEqual((len(record), record.has_torn_end), (n - n_damaged, True))
            shown = subprocess.run([MSCGYM, "show", path], capture_output=True, text=True)
            self.assertEqual(shown.returncode, 0)
            self.assertIn(f"keeping {n - n_damaged} complete trials", shown.stderr)
        for n_damaged, behind in (5, 0), (1, 1), (2, 3), (n, 0):
            path, first = self.damage(n_damaged, behind)
            with self.assertRaisesRegex(mscgym.RecordError, f"damaged.jsonl:{first + 1}: it is damaged"):
                mscgym.Record(path)
            mscgym_says("show", path, code=1)

    def test_record_has_numbers(self):
        with open(self.record, "rb") as file:
            lines = file.readlines()
        lines[1] = lines[1].replace(b'"distill_loss":0,', b'"distill_loss":"inf",')
        lines[2] = lines[2].replace(b'"metrics":{', b'"metrics":{"quality":"-inf",').replace(
            b'"violation":', b'"violation":"inf","x":')
        path = os.path.join(self.folder, "infinite.jsonl")
        with open(path, "wb") as file:
            file.writelines(lines)
        record = mscgym.Record(path)
        self.assertEqual((record.trials[0].metrics["distill_loss"], record.objective(record.trials[0])), (inf, inf))
        self.assertEqual((record.trials[1].metrics["quality"], record.trials[1].violation), (-inf, inf))
        self.assertEqual(record.trials[0].line["metrics"]["distill_loss"], "inf")

    def test_record_is_read_in_little_memory(self):
        with open(self.record, "rb") as file:
            header, first = file.readlines()[:2]
        first = first.replace(b'"choices":[0,0,0]', b'"choices":[' + b",".join([b"2"] * 50) + b"]")
        self.assertIn(b"2,2,2,2", first)
        with open(os.path.join(self.folder, "long.jsonl"), "wb") as file:
            file.write(header)
            file.writelines(first.replace(b'"id":0', b'"id":%d' % i) for i in range(2000))
        tracemalloc.start()
        record = mscgym.Record(os.path.join(self.folder, "long.jsonl"))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        self.assertLess(peak / len(record), 2000)  # 1300; with each line's dictionary 3800

    def test_gym_view_gives_the_objective(self):
        gym = Child([MSCGYM, "gym", self.config, "--trials", "2"])
        space = mscgym.Space.from_json(gym.ask("init")["space"])
        self.assertEqual((space.n_choices, space.choice_feature_names), ([3, 3, 3], ("bits",)))
        self.assertEqual(space.tasks[1].choice_features, ((8,), (6,), (None,)))
        first = gym.ask("reset", seed="3")
        self.assertEqual((first["task"], first["n_choices"], first["observation"]), (0, 3, [0]))
        self.assertEqual(gym.ask("step", choice=2)["reward"], 0)
        with self.assertRaisesRegex(ProtocolError, "no choice 3"):
            gym.ask("step", choice=3)
        state = gym.ask("save")["state"]
        gym.ask("step", choice=1)
        last = gym.ask("step", choice=1)
        self.assertEqual((last["terminated"], last["reward"]), (True, -(2 * 1 + 1 * 2 + 1 * 3) / 8))
        self.assertEqual(last["outcome"]["metrics"]["size"], 4 + 6 + 6 + 2)
        self.assertEqual(gym.ask("restore", state=state)["task"], 1)
        with self.assertRaisesRegex(ProtocolError, "did you mean \"step\""):
            gym.ask("stop")
        gym.close()
        self.assertEqual(gym.process.returncode, 0)


class InFolder(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.addCleanup(self.held.cleanup)
        self.folder = self.held.name

    def search(self, agent, environment, timeout=600):
        """Searches 20 trials with both programs; returns standard error."""
        for name, text in ("agent.py", agent), ("environment.py", environment):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        plug_in = {"type": "process", "timeout": timeout}
        with open(os.path.join(self.folder, "search.json"), "w") as file:
            json.dump({"workspace": ".", "verbose": "error", "gym": [{
                "record": "record.jsonl", "env": {**plug_in, "command": [sys.executable, "environment.py"]},
                "agent": {**plug_in, "command": [sys.executable, "agent.py"]},
                "budget": {"trials": 20}, "parallel": 4}]}, file)
        process = subprocess.run([MSCGYM, "search", "search.json", "--quiet"], cwd=self.folder, capture_output=True,
                                 text=True)
        self.assertEqual(process.returncode, 0, process.stderr)
        return process.stderr


# Output and input of a child process in either program, and output that bypasses Python.
TALK = """
import os, subprocess
def talk():
    subprocess.run(["sh", "-c", "echo a child"], check=True)
    os.write(1, b"a library\\n")
    read = subprocess.run(["cat"], stdout=subprocess.PIPE, check=True).stdout
    assert read == b"", read
"""


class TestClient(unittest.TestCase):
    def test_is_a_program_without_warnings(self):
        # The folder of the package comes first, as for this test.
        found = os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(mscgym.__file__))}
        found.pop("MSCGYM_TOKEN", None)
        said = subprocess.run([sys.executable, "-m", "mscgym.client", "jobs"], env=found, capture_output=True, text=True,
                              check=False)
        self.assertEqual((said.returncode, said.stdout), (1, ""))
        self.assertRegex(said.stderr, r"\Aerror: the token is missing[^\n]*\n\Z")


class TestTalk(InFolder):
    def test_is_no_message(self):
        agent = TALK + AGENT.replace('print("talk goes to standard error")', "talk()")
        environment = TALK + ENVIRONMENT.replace('print("talk goes to standard error")', "talk()")
        self.assertNotEqual((agent, environment), (TALK + AGENT, TALK + ENVIRONMENT))
        said = self.search("print('first')" + agent, "print('first')" + environment, timeout=20).splitlines()
        self.assertEqual(set(said), {"first", "a child", "a library"})
        record = mscgym.Record(os.path.join(self.folder, "record.jsonl"))
        self.assertEqual(len(record), 23)
        self.assertEqual({trial.line.get("reason") for trial in record.trials}, {None, "too narrow"})

    def test_is_as_before_at_the_end(self):
        program = ("import sys\nfrom mscgym import protocol\n"
                   "with protocol.lines_of_its_own() as (requests, answers):\n"
                   "    answers.write(requests.readline()); print('aside')\n"
                   "print('behind', sys.stdin.readline())\n")
        process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        process.stdin.write("one\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "one\n")
        self.assertEqual(process.communicate("two\n"), ("behind two\n\n", "aside\n"))


class TestGuide(InFolder):
    def test_is_right_as_printed(self):
        """Runs the agent and the environment that docs/python.md shows."""
        with open(os.path.join(HERE, "..", "..", "docs", "python.md"), encoding="utf-8") as file:
            sections = file.read().split("\n## ")
        programs = []
        for title in "An agent", "An environment":
            section, = [text for text in sections if text.startswith(title + "\n")]
            lines = section.split("\n\n    ", 1)[1].splitlines()
            end = next(i for i, line in enumerate(lines) if i > 0 and line and not line.startswith("    "))
            programs.append("\n".join(line.removeprefix("    ") for line in lines[:end]))
        self.search(*programs)
        record = mscgym.Record(os.path.join(self.folder, "record.jsonl"))
        self.assertEqual({trial.state for trial in record.trials}, {"complete"})


class TestReasons(InFolder):
    def test_are_lines_of_utf8(self):
        self.search(TOLD, LONG_REASONS)
        with open(os.path.join(self.folder, "record.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file][1:]
        reasons = {line.get("reason", "") for line in lines}
        self.assertEqual(reasons, {"", "two\\nlines", *("Übertragung: " + "x" * n + "ü" * 92 for n in (0, 1))})
        record = mscgym.Record(os.path.join(self.folder, "record.jsonl"))
        self.assertEqual([trial.line for trial in record.trials], lines)
        with open(os.path.join(self.folder, "told.txt"), encoding="utf-8") as file:
            self.assertEqual(file.read().splitlines(),
                             [f"{line['id']} {line.get('reason', '')}" for line in lines])


if __name__ == "__main__":
    unittest.main()
