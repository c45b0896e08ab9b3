#!/usr/bin/env python3
"""Checks that an installed mscgym is complete without the source tree.

usage: check_install.py BUILD EXAMPLES QUERIES --cc CC --cxx CXX --cmake CMAKE --pkg-config PKG_CONFIG

Installs BUILD into an empty folder. Every installed header must compile by itself with -I include,
as C11 and C++17. Headers include one another as <mscgym/...>, and mscgym.h includes them all. The
library must export every function that they declare, the program those that plug-ins may call, and
neither may export anything else. The C examples, copied from EXAMPLES, are built with pkg-config
and with the CMake package. The installed program must search with both plug-ins, and the queries
must print what the file QUERIES has.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

WARNINGS = ["-Wall", "-Wextra", "-Werror"]
C_MODE = ["-std=c11", "-Wpedantic"]
CXX_MODE = ["-std=c++17"]
# Folders whose headers only programs use; plug-ins may use all others.
ABOVE_PLUGINS = tuple(f"mscgym/{folder}/" for folder in (
    "records", "supervise", "search", "checks", "results", "config", "model", "pipeline"))
QUOTED = re.compile(r'^\s*#\s*include\s*".*$', re.M)
OWN = re.compile(r"^#include <(mscgym/[^>]+)>$", re.M)
DECLARATION = re.compile(r"^(?!static|#|//|\s)[^;{}()]*?\b\*?(msc_[a-z0-9_]+)\(", re.M)
VARIABLE = re.compile(r"^extern [^;{}()]*?\b(msc_[a-z0-9_]+)(?:\[\])?;", re.M)
# Symbols that the C runtime adds to every program.
RUNTIME = re.compile(r"_|data_start$")
BUDGET = 20


class Failure(Exception):
    """Says what is wrong in one line, followed by the tool's output."""


def run(command, **options):
    """Runs a command that must succeed; returns its standard output."""
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def install(arguments, prefix):
    run([arguments.cmake, "--install", arguments.build, "--prefix", prefix])
    found = {}
    for name, pattern in (("include", "include"), ("program", "bin/mscgym"),
                          ("runtime", "bin/mscgym-runtime"), ("runtime", "bin/mscgym-client"),
                          ("manual", "share/man/man1/mscgym.1"),
                          ("bash", "share/bash-completion/completions/mscgym"),
                          ("zsh", "share/zsh/site-functions/_mscgym"),
                          ("fish", "share/fish/vendor_completions.d/mscgym.fish"),
                          ("library", "lib*/**/libmscgym.so"), ("pc", "lib*/**/mscgym.pc")):
        paths = sorted(prefix.glob(pattern))
        if not paths:
            raise Failure(f"{pattern}: not installed")
        found[name] = paths[0]
    return argparse.Namespace(**found)


def compile_header(command, header):
    # The declaration is for headers with only macros: C forbids an empty translation unit.
    return subprocess.run(command + ["-fsyntax-only", "-"], text=True, check=False,
                          input=f"#include <{header}>\nextern int nothing;\n",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def check_headers(arguments, installed):
    headers = sorted(path.relative_to(installed.include).as_posix()
                     for path in installed.include.rglob("*.h"))
    check_includes(installed, headers)
    place = ["-I", str(installed.include)]
    modes = [[arguments.cc, "-x", "c"] + C_MODE, [arguments.cxx, "-x", "c++"] + CXX_MODE]
    jobs = [(mode + WARNINGS + place, header) for mode in modes for header in headers]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda job: compile_header(*job), jobs))
    bad = [f"{header}: {' '.join(command)}\n{done.stdout}"
           for (command, header), done in zip(jobs, results) if done.returncode != 0]
    if bad or not headers:
        names = len({text.split(":")[0] for text in bad})
        raise Failure("\n".join(bad + [f"{names} of {len(headers)} headers do not compile alone"]))
    return headers


def check_includes(installed, headers):
    """Every header must be under mscgym/, include others by that name, and be included by mscgym.h."""
    wrong = []
    for path in installed.include.rglob("*"):
        name = path.relative_to(installed.include).as_posix()
        if path.is_dir():
            continue
        text = path.read_text(encoding="utf-8")
        wrong += [f"{name}: {line}: expected #include <mscgym/...>" for line in QUOTED.findall(text)]
        wrong += [f"{name}: <{include}> is not installed" for include in OWN.findall(text)
                  if not (installed.include / include).is_file()]
        if not name.startswith("mscgym/"):
            wrong.append(f"{name}: outside of include/mscgym")
    included = OWN.findall((installed.include / "mscgym/mscgym.h").read_text(encoding="utf-8"))
    wrong += [f"mscgym/mscgym.h: does not include {header}"
              for header in sorted(set(headers) - {"mscgym/mscgym.h"} - set(included))]
    if wrong:
        raise Failure("\n".join(sorted(wrong)))


def exported(path):
    names = [line.split()[-1] for line in run(["nm", "-D", "--defined-only", path]).splitlines()]
    # A name with a version is a copy of another library's variable, such as stdout.
    return {name for name in names if "@" not in name and not RUNTIME.match(name)}


def declared(header):
    """The names of a header's functions and variables."""
    text = re.sub(r"//.*", "", header.read_text(encoding="utf-8"))
    return set(DECLARATION.findall(text)) | set(VARIABLE.findall(text))


def check_symbols(installed, headers):
    in_library = exported(installed.library)
    in_program = exported(installed.program)
    wrong = []
    everything = set()
    for header in headers:
        names = declared(installed.include / header)
        everything |= names
        wrong += [f"{header}: {name} is not in the library; is it between MSC_PUBLIC_BEGIN and "
                  "MSC_PUBLIC_END, and defined?" for name in names - in_library]
        if not header.startswith(ABOVE_PLUGINS):
            wrong += [f"{header}: {name} is not in the program, for plug-ins"
                      for name in names - in_program]
    for where, names in (("library", in_library), ("program", in_program)):
        wrong += [f"{name}: the {where} shows it, but no installed header declares it"
                  for name in names - everything]
    if wrong:
        raise Failure("\n".join(sorted(wrong)))


def build_by_pkg_config(arguments, installed, examples):
    """Builds with the commands in docs/. Plug-ins are put next to their sources, where the
    configuration expects them.
    """
    variables = os.environ | {"PKG_CONFIG_PATH": str(installed.pc.parent)}

    def flags(*options):
        return run([arguments.pkg_config, *options, "mscgym"], env=variables).split()

    compiler = [arguments.cc, "-std=c11"] + WARNINGS
    built = []
    for source in ("agents/hill_climb_agent.c", "environments/weight_bits.c"):
        out = (examples / source).with_suffix(".so")
        run(compiler + ["-shared", "-fPIC"] + flags("--cflags") + ["-o", out, examples / source])
        built.append(out)
    for program in (examples / "graph/queries", examples / "runtime/retrained"):
        run(compiler + ["-o", program, program.with_suffix(".c")] + flags("--cflags", "--libs"))
        built.append(program)
    return built


def build_by_cmake(arguments, installed, examples):
    folder = examples / "build"
    run([arguments.cmake, "-S", examples, "-B", folder, f"-DCMAKE_C_COMPILER={arguments.cc}",
         f"-DCMAKE_PREFIX_PATH={installed.program.parent.parent}"])
    run([arguments.cmake, "--build", folder])
    return [folder / name for name in ("hill_climb_agent.so", "weight_bits.so", "queries", "retrained")]


def check_built(installed, examples, expected, built):
    agent, env, queries, retrained = built
    for command, path in (("agents", agent), ("envs", env)):
        run([installed.program, command, path])
    config = examples / "environments/weight_bits.json"
    content = json.loads(config.read_text(encoding="utf-8"))
    gym = content["quantize"]["gym"][0]
    content["workspace"] = str(built[0].parent / "workspace")
    gym["env"]["type"] = str(env)
    gym["agent"] = {"type": "library", "path": str(agent)}
    gym["budget"] = {"trials": BUDGET}
    config.write_text(json.dumps(content), encoding="utf-8")
    shown = run([installed.program, "search", config, "--quiet"])
    if "ended: the trial budget is used up" not in shown:
        raise Failure(f"the search with {agent} and {env} says:\n{shown}")
    linked = os.environ | {"LD_LIBRARY_PATH": str(installed.library.parent)}
    answers = run([queries], env=linked)
    if answers != expected:
        raise Failure(f"{queries} answers:\n{answers}\nexpected:\n{expected}")
    check_retrained(installed, examples, retrained, linked)


def check_retrained(installed, examples, retrained, linked):
    """Passes the model's own weights as new ones: with new scales the strategy must be as good as before."""
    model, samples = examples / "digits/digits.onnx", examples / "digits/calibration.npz"
    folder = retrained.parent / "retrained_files"
    folder.mkdir()
    config = {"workspace": str(folder), "model": str(model), "verbose": "error",
              "dataset": {"inputs": str(samples)}, "quantize": {"runtime": False}}
    (folder / "plain.json").write_text(json.dumps(config), encoding="utf-8")
    run([installed.program, "search", folder / "plain.json", "--quiet"])
    run([installed.program, "graph", model, "-o", folder / "graph.json", "--quiet"])
    said = run([retrained, model, samples, folder / "msc_quantize.json",
                folder / "graph.safetensors", folder / "small.onnx"], env=linked)
    losses = re.search(r"distill loss: (\S+) with the old scales, (\S+) with", said)
    if not losses or losses[1] != losses[2] or not (folder / "small.onnx").exists():
        raise Failure(f"{retrained} says:\n{said}")


def check(arguments, folder):
    installed = install(arguments, folder / "prefix")
    headers = check_headers(arguments, installed)
    check_symbols(installed, headers)
    expected = arguments.queries.read_text(encoding="utf-8")
    examples = folder / "examples"
    shutil.copytree(arguments.examples, examples)
    for build in (build_by_pkg_config, build_by_cmake):
        check_built(installed, examples, expected, build(arguments, installed, examples))
    print(f"{len(headers)} headers compile alone; plug-ins and programs build and run")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("examples", type=Path)
    parser.add_argument("queries", type=Path)
    for tool in ("--cc", "--cxx", "--cmake", "--pkg-config"):
        parser.add_argument(tool, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            check(arguments, Path(folder))
        except Failure as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
