#!/usr/bin/env python3
"""Runs the code of the notebooks in examples/notebooks, cell by cell, without Jupyter.

    check_notebooks.py MSCGYM [NAME ...]

Each notebook runs in a copy of its folder, and must end within LIMIT seconds of processor time. What cells display
is not compared. A notebook whose packages are missing is skipped; exits with 77 if none ran.
"""
import ast
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "examples" / "notebooks"
LIMIT = 120
PACKAGES = {"cnn_accuracy_drop": ["numpy"], "transformer": ["numpy", "torch", "onnxscript"],
            "prune_train_quantise": ["numpy", "torch", "onnx", "onnxscript"]}


def code(notebook):
    """The program of a notebook's code cells. The last expression of a cell is displayed as Jupyter does it."""
    parts = ["def _show(value):\n    getattr(value, '_repr_html_', value.__repr__)()\n"]
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            tree.body[-1].value = ast.Call(ast.Name("_show", ast.Load()), [tree.body[-1].value], [])
        parts.append(ast.unparse(ast.fix_missing_locations(tree)))
    return "\n".join(parts)


def check_form(path, notebook):
    assert notebook["nbformat"] == 4, f"{path}: format {notebook['nbformat']}, expected 4"
    outputs = [cell for cell in notebook["cells"] if cell.get("outputs")]
    assert not outputs, f"{path}: {len(outputs)} cells have outputs; clear them"


def lacks(packages):
    missing = [name for name in packages if subprocess.run(
        [sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode != 0]
    return ", ".join(missing)


def run(path, program, folder):
    """Runs a notebook; returns the processor time in seconds."""
    shutil.copytree(ROOT / "examples" / "digits", folder / "digits", ignore=shutil.ignore_patterns("msc_workspace"))
    (folder / "notebooks").mkdir()
    script = folder / "notebooks" / f"{path.stem}.py"
    script.write_text(code(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    (folder / "bin").mkdir()
    (folder / "bin" / "mscgym").symlink_to(program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1",
                   "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, script.name], cwd=script.parent, env=environment, capture_output=True,
                          text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, f"{path}: {done.stdout}{done.stderr}"
    print(done.stdout, end="")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    program, names = os.path.abspath(sys.argv[1]), sys.argv[2:]
    n_run = 0
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if names and path.stem not in names:
            continue
        check_form(path, json.loads(path.read_text(encoding="utf-8")))
        missing = lacks(PACKAGES[path.stem])
        if missing:
            print(f"skipped: {path.stem}: there is no {missing} in {sys.executable}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            seconds = run(path, program, pathlib.Path(folder))
        print(f"{path.stem}: {seconds:.1f} s of processor time", flush=True)
        assert seconds < LIMIT, f"{path.stem}: {seconds:.1f} s, expected less than {LIMIT} s"
        n_run += 1
    sys.exit(0 if n_run else 77)


main()
