"""Checks the JSON Schema that `mscgym config --schema` prints, by the package jsonschema.

    check_schema.py MSCGYM SOURCE_FOLDER

The schema must accept every configuration that the program accepts, contain every key that the
program lists, and name the place of a wrong key or value. Without jsonschema the test is skipped.
"""
import copy
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    print("skipped: Python has no package jsonschema")
    sys.exit(0)

mscgym, source = sys.argv[1], pathlib.Path(sys.argv[2])


def ask(*arguments):
    return json.loads(subprocess.run([mscgym, *arguments], check=True, capture_output=True).stdout)


schema = ask("config", "--schema")
validator = jsonschema.Draft7Validator(schema)

FULL = {
    "$schema": "mscgym.schema.json",
    "model": "m.onnx",
    "bind": {"H": 224},
    "dataset": {"inputs": "x.npz", "state": {"h": "hn"}, "validation": 0.2,
                "image": {"channels": 3, "mean": [0, 0, 0], "std": [1, 1, 1]}},
    "baseline": {"check_config": {"atol": 1e-3}},
    "prune": {"gym": [{"env": {"choices": [{"density": 0.5}, {"pattern": "2:4"}], "fix": {"a*": 0.3},
                               "rules": [{"name": "b*", "choices": ["0.5"]}]}}]},
    "quantize": {
        "target": "onnxruntime",
        "runtime": False,
        "gym": [{
            "env": {"choices": [{"bits": 8}, {"bits": 4, "rounding": "descent", "correct": "affine"}],
                    "observers": {"weights": "auto"},
                    "rules": [{"kind": "activation", "choices": ["8"]}],
                    "objectives": ["distill_loss", "size_bytes"],
                    "bounds": {"size_ratio": {"max": 0.2}, "accuracy": {"drop": 0.01, "relative": True},
                               "bit_ops_ratio": {"max": 0.1}},
                    "command": ["./score.py", "{model}"]},
            "agent": {"type": "evolutionary"},
            "budget": {"time": "1h30m", "trials": 100},
            "race": {"rungs": [1, 2], "keep": 0.5, "margin": False},
            "rerank": {"top": 3, "command": {"argv": ["./score.py", "{model}"], "maximise": True}},
            "distill": {"ridge": [0.5, 0.1]},
            "seed": "12345678901234567"}]},
    "gym": [{"record": "toy.jsonl", "env": {"type": "toy"}, "agent": {"type": "library", "path": "./own.so"}}],
}

# Places in FULL and wrong values for them. The error must be at this place; for an unknown key, at
# its object.
WRONG = [
    (["quantise"], {}, []),
    (["model"], 3, ["model"]),
    (["bind", "H"], "x", ["bind", "H"]),
    (["dataset", "image", "channels"], 2, ["dataset", "image", "channels"]),
    (["dataset", "validation"], 1.5, ["dataset", "validation"]),
    (["dataset", "input"], "x", ["dataset"]),
    (["quantize", "target"], "onnxrt", ["quantize", "target"]),
    (["quantize", "gym", 0, "budget", "time"], "8 hours", ["quantize", "gym", 0, "budget", "time"]),
    (["quantize", "gym", 0, "budget", "trails"], 3, ["quantize", "gym", 0, "budget"]),
    (["quantize", "gym", 0, "env", "choices", 1, "bits"], 1, ["quantize", "gym", 0, "env", "choices", 1, "bits"]),
    (["quantize", "gym", 0, "env", "choices", 1, "round"], "gptq", ["quantize", "gym", 0, "env", "choices", 1]),
    (["quantize", "gym", 0, "env", "bounds", "sise"], {"max": 1}, ["quantize", "gym", 0, "env", "bounds"]),
    (["quantize", "gym", 0, "env", "objectives", 0], "acuracy", ["quantize", "gym", 0, "env", "objectives", 0]),
    (["quantize", "gym", 0, "agent", "type"], "evolution", ["quantize", "gym", 0, "agent", "type"]),
    (["quantize", "gym", 0, "agent", "popluation"], 3, ["quantize", "gym", 0, "agent"]),
    (["quantize", "gym", 0, "race", "keep"], 1, ["quantize", "gym", 0, "race", "keep"]),
    (["prune", "gym", 0, "env", "choices", 0, "density"], 0, ["prune", "gym", 0, "env", "choices", 0, "density"]),
    (["prune", "gym", 0, "env", "weights"], {}, ["prune", "gym", 0, "env"]),
    (["gym", 0, "env", "type"], "toys", ["gym", 0, "env", "type"]),
    (["gym", 0, "env", "tasks"], "four", ["gym", 0, "env", "tasks"]),
]
# Keys whose values the program checks only when a search opens.
READ_LATER = {"bind", "choices", "bounds", "objectives", "race"}


def examples():
    """The configurations among the examples."""
    return [path for folder in ("examples/*", "python/examples") for path in sorted(source.glob(f"{folder}/*.json"))
            if '"gym"' in path.read_text(encoding="utf-8")]


def deepest(errors):
    """The places of all errors, down to those inside of `anyOf`."""
    for error in errors:
        yield list(error.absolute_path)
        yield from deepest(error.context or [])


def fault(config):
    """What the program says against the configuration; empty: nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "c.json")
        path.write_text(json.dumps(config), encoding="utf-8")
        run = subprocess.run([mscgym, "config", "--allow-plugins", str(path)], capture_output=True, text=True, check=False)
        return run.stderr


class Schema(unittest.TestCase):
    def test_schema_is_valid(self):
        jsonschema.Draft7Validator.check_schema(schema)

    def test_accepts_what_the_program_accepts(self):
        self.assertEqual(fault(FULL), "")
        self.assertGreaterEqual(len(examples()), 8)
        for path in examples():
            validator.validate(json.loads(path.read_text(encoding="utf-8")))
        for path in source.glob("examples/digits/*.json"):
            validator.validate(ask("config", "--show", str(path)))
        validator.validate(FULL)

    def test_names_the_place(self):
        for path, value, place in WRONG:
            with self.subTest(path=path):
                config = copy.deepcopy(FULL)
                at = config
                for step in path[:-1]:
                    at = at[step]
                at[path[-1]] = value
                self.assertIn(place, list(deepest(validator.iter_errors(config))))
                if not set(path) & READ_LATER:
                    self.assertNotEqual(fault(config), "")

    @unittest.skipUnless(shutil.which("check-jsonschema"), "no check-jsonschema")
    def test_check_jsonschema(self):
        """The tool that editors and hooks use accepts the examples, and names the place of a wrong key."""
        with tempfile.TemporaryDirectory() as folder:
            files = {name: pathlib.Path(folder, name) for name in ("schema.json", "wrong.json")}
            files["schema.json"].write_text(json.dumps(schema), encoding="utf-8")
            command = ["check-jsonschema", "--schemafile", str(files["schema.json"])]
            run = subprocess.run([*command, *map(str, examples())], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stdout)
            wrong = copy.deepcopy(FULL)
            wrong["quantize"]["gym"][0]["budget"]["trails"] = 3
            files["wrong.json"].write_text(json.dumps(wrong), encoding="utf-8")
            run = subprocess.run([*command, str(files["wrong.json"])], capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertRegex(run.stdout, r"\$\.quantize\.gym\[0\]\.budget: .*'trails'")

    def test_has_every_key(self):
        definitions = schema["definitions"]
        everywhere = set(schema["properties"])
        for definition in definitions.values():
            everywhere |= set(definition.get("properties", {}))
        for section in ask("config", "--json"):
            self.assertLessEqual({k["name"] for k in section["keys"]}, everywhere, section["section"])
        for kind, command in (("env", "envs"), ("agent", "agents")):
            for plugin in ask(command, "--json"):
                self.assertLessEqual({p["name"] for p in plugin["params"]},
                                     set(definitions[f"{kind}_{plugin['name']}"]["properties"]), plugin["name"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
