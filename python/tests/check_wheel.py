#!/usr/bin/env python3
"""Makes a wheel by scripts/wheel, installs it in an empty virtual environment, and tests all its parts.

    check_wheel.py SOURCE MSCGYM CC

MSCGYM is the program of an ordinary build, whose records the wheel's must equal bit by bit. CC
compiles a plug-in.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

MAX_BYTES = 60e6
NOTEBOOKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples", "notebooks")
RUNTIMES = re.compile(r"lib(gomp|omp|iomp5)-")
NOT_SOURCE = re.compile(r"\.git|build.*|__pycache__|msc_workspace|Testing")


class Failure(Exception):
    """Says what was expected and what was found."""


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def expect(condition, what):
    if not condition:
        raise Failure(f"expected: {what}")


def tree(folder):
    """The source files with their modification times."""
    found = {}
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not NOT_SOURCE.fullmatch(name)]
        for name in files:
            path = os.path.join(place, name)
            found[path] = os.lstat(path).st_mtime_ns
    return found


def needed(path):
    return set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path)))


def check_contents(wheel):
    expect(os.path.getsize(wheel) <= MAX_BYTES, f"a wheel of {MAX_BYTES:.0f} bytes at most")
    glibc = os.confstr("CS_GNU_LIBC_VERSION").split()[1].replace(".", "_")
    expect(f"-py3-none-manylinux_{glibc}_" in wheel, "the tag of this machine's glibc")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        listed, = (name for name in names if name.endswith(".dist-info/licenses/bundled/LIST.txt"))
        rows = archive.read(listed).decode().split("\n\n")[1].splitlines()
    libraries = [name for name in names if name.startswith("mscgym.libs/") and not name.endswith("/")]
    described = [row.split() for row in rows if not row.startswith("compiled in")]
    expect(len(described) == len(libraries) > 10, "a row of the list for each library")
    for row in described:
        expect(f"{os.path.dirname(listed)}/{row[1]}.txt" in names, f"the licence of {row[1]}")


def check_libraries(site):
    folder = os.path.join(site, "mscgym.libs")
    libraries = os.listdir(folder)
    expect(len([name for name in libraries if RUNTIMES.match(name)]) == 1, f"one runtime of OpenMP: {libraries}")
    openblas, = (name for name in libraries if name.startswith("libopenblas"))
    for name in libraries:
        if name.startswith(("libblas", "liblapack-")):
            expect(openblas in needed(os.path.join(folder, name)), f"that {name} is OpenBLAS's")


def search(program, folder, environment):
    """Searches the packaged example; returns the canonical record."""
    run("python3", "-m", "mscgym.examples", folder, env=environment)
    said = run(program, "search", os.path.join(folder, "digits", "digits.json"), "--quiet", env=environment)
    expect("winner: trial" in said, "a winner")
    record = os.path.join(folder, "digits", "msc_workspace", "digits.jsonl")
    return run(program, "show", record, "--canonical", env=environment)


def check_program(folder, environment, program):
    ours, theirs = (search(name, os.path.join(folder, f"examples{i}"), environment)
                    for i, name in enumerate(("mscgym", program)))
    notebooks = {name for name in os.listdir(os.path.join(folder, "examples0", "notebooks")) if name.endswith(".ipynb")}
    expect(notebooks == {name for name in os.listdir(NOTEBOOKS) if name.endswith(".ipynb")}, "all notebooks")
    expect(json.loads(ours.splitlines()[0])["numerics"], "a numerics id")
    expect(ours == theirs, "the record of the ordinary build, with its numerics id")


def check_runtime(folder, environment):
    """Python, the script and the program find the runtime's module."""
    for command in (["python3", "-m", "mscgym.runtime"], ["mscgym-runtime"]):
        # Lines with a "note" may precede the answer.
        answer = json.loads(run(*command, input='{"method":"hello"}\n', env=environment).splitlines()[-1])
        expect(answer["protocol"] == 1, f"an answer of {command}")
    alone = {"PATH": "/usr/bin:/bin", "HOME": folder}  # without the virtual environment in the PATH
    done = subprocess.run([shutil.which("mscgym", path=environment["PATH"]), "bench", "examples0/digits/digits.onnx"],
                          cwd=folder, env=alone, text=True, capture_output=True, check=False)
    python = os.path.join(folder, "venv", "bin", "python")
    expect(f"onnxruntime is not installed for {python}" in done.stderr, f"its own Python, not: {done.stderr}")


def check_plug_in(folder, environment, cc):
    include = run("python3", "-c", "import mscgym; print(mscgym.get_include())", env=environment).strip()
    for source, command in (("agents/hill_climb_agent.c", "agents"), ("environments/weight_bits.c", "envs")):
        library = os.path.join(folder, "plug_in.so")
        run(cc, "-std=c11", "-shared", "-fPIC", "-Wall", "-Werror", f"-I{include}", "-o", library,
            os.path.join(folder, "examples0", source))
        run("mscgym", command, library, env=environment)


def check(source, program, cc, folder):
    before = tree(source)
    wheels = os.path.join(folder, "wheels")
    print(run(sys.executable, os.path.join(source, "scripts", "wheel"), wheels).splitlines()[-1])
    expect(tree(source) == before, "that building writes nothing into the sources")
    wheel, = (os.path.join(wheels, name) for name in os.listdir(wheels) if name.endswith(".whl"))
    check_contents(wheel)
    run(sys.executable, "-m", "venv", os.path.join(folder, "venv"))
    environment = {"PATH": os.path.join(folder, "venv", "bin") + ":/usr/bin:/bin", "HOME": folder}
    run("pip", "install", "--no-index", "--no-deps", wheel, env=environment)
    site = run("python3", "-c", "import sysconfig; print(sysconfig.get_path('platlib'))", env=environment).strip()
    check_libraries(site)
    check_program(folder, environment, program)
    check_runtime(folder, environment)
    check_plug_in(folder, environment, cc)
    for test in "test_core.py", "test_ray.py":
        print(run("python3", os.path.join(source, "python", "tests", test), "--installed",
                  env=environment).splitlines()[-1])


def main():
    source, program, cc = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="mscgym_wheel_") as folder:
        tried = os.path.join(folder, "tried")
        done = subprocess.run([sys.executable, "-m", "venv", tried], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            done = subprocess.run([os.path.join(tried, "bin", "pip"), "download", "--quiet", "--no-deps", "--dest",
                                   folder, "scikit-build-core"], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"skipped: no python3-venv, or no PyPI: {(done.stderr or done.stdout).splitlines()[-1]}")
            return 0
        try:
            check(source, program, cc, folder)
        except Failure as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
