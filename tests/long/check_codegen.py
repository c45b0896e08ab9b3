#!/usr/bin/env python3
"""Builds and runs the programs that `mscgym codegen` writes, each alone in a folder.

    check_codegen.py MSCGYM BUILD [NAME ...]

mscgym is installed from its build folder BUILD into a prefix. For each network, the program in C is
(a) compiled with all warnings as errors, and run by ctest;
(b) compiled with the address and undefined-behaviour sanitizers, and run: nothing may leak;
(c) formatted as clang-format would, with the style of its folder, where clang-format is installed;
(d) run on the recorded inputs: its outputs must have the bits of `mscgym run --threads 1`, and be
    close to those of onnxruntime;
(e) run with a wrong weight: the test must fail.
The program in C++ is compiled with all warnings as errors, run by ctest, and must give the bits of
onnxruntime's Python package. It needs headers of onnxruntime's C++ API, such as those of Debian's
libonnxruntime-dev: MSC_ONNXRUNTIME_INCLUDE names their folder. The library is that of the Python
package. Networks of torch need torch. What is missing is skipped, with a line that says so. The
first commands of docs/codegen.md are run as they are.

Needs numpy, onnx and onnxruntime. Exits with 1 if a check fails, with 77 if packages are missing.
"""
import glob
import importlib.util
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DATA = "/usr/share/libonnx-testdata/data/node"
sys.path[:0] = [os.path.join(ROOT, "python"), os.path.join(ROOT, "tests", "pipeline")]

import check_dynamic  # exits if packages are missing
from small_onnx import Checks, make, node, numpy, onnx, onnxruntime  # exits if packages are missing
from mscgym.safetensors import read_safetensors, write_safetensors

WARNINGS = "-Wall -Wextra -Wpedantic -Werror"
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all"


def run(*command, **options):
    """Exit code and all text."""
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False, **options)
    return done.returncode, done.stdout


# ---- Networks. A maker returns the model, the file of inputs or None, and further options. -------

def digits(checks):
    return f"{ROOT}/examples/digits/digits.onnx", f"{ROOT}/examples/digits/calibration.npz", ["--batch=4"]


def digits_quantised(checks):
    model, inputs, more = digits(checks)
    checks.expect("quantize", checks.mscgym("quantize", model, "--inputs", inputs, "-o", "quantised.onnx")[0] == 0)
    return "quantised.onnx", inputs, more


def digits_strategy(checks):
    """Channels pruned, and 8 bits and fewer: the best of some trials, as its record names it."""
    model, inputs, more = digits(checks)
    shutil.copytree(os.path.dirname(model), "search", ignore=shutil.ignore_patterns("msc_*"))
    code, text = checks.mscgym("search", "search/joint.json", "--trials", 40, "--quiet")
    checks.expect("search", code == 0, text)
    found = glob.glob("search/msc_workspace/joint/*.jsonl")
    checks.expect("one record", len(found) == 1, found)
    return found[0], inputs, more


def dynamic(result):
    """Activations that are quantised dynamically: the record of a search, or the exported model."""
    def make_dynamic(checks):
        dims, _ = check_dynamic.layers("model.onnx")
        numpy.savez("x.npz", x=numpy.random.default_rng(1).standard_normal((8, *dims), numpy.float32))
        check_dynamic.quantize(checks.mscgym_path, "cpu", "onnxruntime", {"rules": [
            {"kind": "activation", "choices": ["8 dynamic"]}, {"kind": "weight", "choices": ["8"]}]})
        return result, "x.npz", ["--batch=4"]
    return make_dynamic


def file_of_tests(name):
    return lambda checks: (f"{ROOT}/tests/cli/files/{name}.onnx", None, [])


def backend_case(name):
    def make_case(checks):
        if not os.path.isdir(f"{DATA}/{name}"):
            raise LookupError("libonnx-testdata is not installed")
        model = onnx.load(f"{DATA}/{name}/model.onnx")
        arrays = {}
        for i, info in enumerate(model.graph.input):
            tensor = onnx.TensorProto()
            with open(f"{DATA}/{name}/test_data_set_0/input_{i}.pb", "rb") as file:
                tensor.ParseFromString(file.read())
            array = onnx.numpy_helper.to_array(tensor)
            arrays[info.name] = array[numpy.newaxis] if array.ndim == 0 or array.shape[0] != 1 else array
        numpy.savez("case.npz", **arrays)
        return f"{DATA}/{name}/model.onnx", "case.npz", []
    return make_case


def odd_names(checks):
    """Names that C, CMake and the shell read in their own way."""
    odd = 'a"b\\c??/d\n\u00e9 $x;@NAME@'
    weight = numpy.linspace(-1, 1, 12, dtype=numpy.float32).reshape(4, 3)
    make("test.onnx", [node("MatMul", [odd, odd + "w"], [odd + "y"], name=odd + "n"),
                       node("Abs", [odd + "y"], [odd + "z"], name="-" + odd)],
         {odd: ["n", 4]}, {odd + "z": ["n", 3]}, {odd + "w": weight})
    return "test.onnx", None, []


def from_torch(module, function, *words, quantise=False):
    def make_torch(checks):
        if importlib.util.find_spec("torch") is None or importlib.util.find_spec(module.split(".")[0]) is None:
            raise LookupError("no torch")
        samples = getattr(importlib.import_module(module), function)("torch.onnx", 8, *words)
        numpy.savez("torch.npz", **samples)
        if not quantise:
            return "torch.onnx", "torch.npz", []
        code, text = checks.mscgym("quantize", "torch.onnx", "--inputs", "torch.npz", "-o", "torch8.onnx",
                                   "--effort", "fast")
        checks.expect("quantize", code == 0, text)
        return "torch8.onnx", "torch.npz", []
    return make_torch


NETWORKS = {
    "digits": digits,
    "digits quantised": digits_quantised,
    "digits pruned and quantised": digits_strategy,
    "dynamic": dynamic("record.jsonl"),
    "dynamic exported": dynamic("small.onnx"),
    "odd names": odd_names,
    "branch": file_of_tests("branch"),
    "half": file_of_tests("tiny_half"),
    "loop": backend_case("test_loop11"),
    "scan": backend_case("test_scan9_sum"),
    "resnet18": from_torch("models_torch", "vision", "resnet18", "dynamo", 18),
    "mobilenet_v2": from_torch("models_torch", "vision", "mobilenet_v2", "script", 11),
    "cnn quantised": from_torch("models_torch", "layers", "cnn", "script", 13, quantise=True),
    "unet": from_torch("models_torch", "layers", "unet", "dynamo", 18),
    "lstm": from_torch("models_torch", "layers", "lstm", "script", 17),
    "gru": from_torch("models_torch", "layers", "gru", "dynamo", 21),
    "encoder": from_torch("models_torch", "layers", "encoder", "dynamo", 18),
    "encoder quantised": from_torch("models_torch", "layers", "encoder", "dynamo", 18, quantise=True),
    "bert": from_torch("models_transformers", "make", "bert", "dynamo", 18),
}


# ---- Checks -------------------------------------------------------------------------------------

def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def difference(found, expected):
    """Root mean square of the differences, relative to that of `expected`."""
    if found.shape != expected.shape:
        return numpy.inf
    found, expected = found.astype(numpy.float64), expected.astype(numpy.float64)
    square = numpy.square(found - expected).sum()
    return float(numpy.sqrt(square / numpy.square(expected).sum())) if square > 0 else 0.0


class Program:
    """A generated folder, alone, and its program."""

    def __init__(self, checks, name, folder, settings):
        self.checks, self.name, self.folder, self.settings = checks, name, folder, settings

    def expect(self, what, holds, found=""):
        return self.checks.expect(f"{self.name}: {what}", holds, found)

    def build(self, flags="", where="build", kind="Release"):
        """Path of the program in a build folder, or None."""
        build = f"{self.folder}/{where}"
        language = "CXX" if os.path.exists(f"{self.folder}/main.cpp") else "C"
        code, text = run("cmake", "-S", self.folder, "-B", build, f"-DCMAKE_BUILD_TYPE={kind}",
                         f"-DCMAKE_{language}_FLAGS={WARNINGS} {flags}", *self.settings)
        if code == 0:
            code, text = run("cmake", "--build", build)
        if not self.expect(f"builds {flags}", code == 0, text[-2000:]):
            return None
        return next(path for path in glob.glob(f"{build}/run_*") if os.access(path, os.X_OK))

    def test(self, where="build"):
        code, text = run("ctest", "--test-dir", f"{self.folder}/{where}", "--output-on-failure",
                         env=dict(os.environ, ASAN_OPTIONS="detect_leaks=1"))
        self.expect(f"passes its test in {where}", code == 0, text[-2000:])

    def check_format(self):
        tool = next(filter(shutil.which, ["clang-format-14", "clang-format"]), None)
        sources = [path for ending in ("c", "h", "cpp") for path in glob.glob(f"{self.folder}/*.{ending}")]
        if tool:
            code, text = run(tool, "--dry-run", "--Werror", *sources)
            self.expect("is formatted", code == 0, text)

    def generate(self, checks, model, inputs, more, kind):
        given = ["--inputs", inputs] if inputs else []
        code, text = checks.mscgym("codegen", model, "--to", kind, "-o", self.folder, *given, *more)
        return self.expect("is generated", code == 0, text)


class CProgram(Program):
    def recorded(self, what):
        return {k: v.copy() for k, v in read_safetensors(f"{self.folder}/{what}.safetensors").items()}

    def check(self, model):
        program = self.build()
        if not program:
            return
        self.test()
        if self.build(SANITIZERS, "build_asan", "Debug"):
            self.test("build_asan")
        self.check_format()
        inputs, outputs = self.recorded("inputs"), self.recorded("outputs")
        code, text = run(program, self.folder, f"{self.folder}/inputs.safetensors", "own.safetensors")
        self.expect("runs", code == 0, text)
        own = read_safetensors("own.safetensors")
        self.expect("gives the recorded bits", own.keys() == outputs.keys() and
                    all(same_bits(own[k], outputs[k]) for k in own))
        self.check_run(model, inputs, outputs)
        self.check_wrong_weight(program)

    def check_run(self, model, inputs, outputs):
        """`mscgym run` computes the bits; onnxruntime computes nearly the same."""
        more = []
        if not model.endswith(".onnx"):
            code, text = self.checks.mscgym("export", model, "-o", "record.onnx", "--save-strategy", "record.json",
                                            "--quiet")
            self.expect("exports its strategy", code == 0, text)
            with open(model, encoding="utf-8") as file:
                name = os.path.basename(json.loads(file.readline())["config"]["model"])
            model = name if os.path.exists(name) else f"{ROOT}/examples/digits/{name}"
            more = ["--strategy", "record.json"]
        elif "quantised" not in self.name and "half" not in self.name:
            session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
            expected = session.run(None, inputs)
            names = [output.name for output in session.get_outputs()]
            worst = max(difference(outputs[k], v) for k, v in zip(names, expected))
            self.expect("is close to onnxruntime", worst < 1e-4, worst)
        arguments = []
        for i, (name, value) in enumerate(inputs.items()):
            numpy.save(f"input_{i}.npy", value)
            arguments += ["--input", f"{name}=input_{i}.npy"]
        output = f"{self.folder}/run.safetensors"
        code, text = self.checks.mscgym("run", model, *arguments, *more, "--repeat", "0", "--threads", "1",
                                        "--quiet", "--output", output)
        if self.expect("mscgym runs it", code == 0, text):
            found = read_safetensors(output)
            differing = [(k, difference(found[k], v)) for k, v in outputs.items() if not same_bits(found[k], v)]
            self.expect("gives the bits of mscgym run", not differing, differing)

    def check_wrong_weight(self, program):
        """Changes the largest weight by a thousandth."""
        weights = self.recorded("weights")
        floats = [name for name, value in weights.items() if value.dtype.kind in "fiu" and value.size]
        if not floats:
            return
        shutil.copytree(self.folder, "wrong", dirs_exist_ok=True)
        name = max(floats, key=lambda name: weights[name].size)
        value = weights[name]
        weights[name] = (value * 1.001 + 0.001).astype(value.dtype) if value.dtype.kind == "f" else value + 1
        write_safetensors("wrong/weights.safetensors", {k: [v] for k, v in weights.items()})
        code, text = run(program, "wrong")
        # A strategy fits only the weights that it was found with.
        why = "weights" if os.path.exists(f"{self.folder}/strategy.json") else "not as recorded"
        self.expect(f"finds that {name} is wrong", code == 1 and why in text, text)
        shutil.rmtree("wrong")


class OrtProgram(Program):
    is_sanitized = False

    def check(self, model):
        program = self.build()
        if not program:
            return
        self.test()
        self.check_format()
        if not OrtProgram.is_sanitized:  # the source is the same for all networks
            OrtProgram.is_sanitized = True
            if self.build(SANITIZERS, "build_asan", "Debug"):
                self.test("build_asan")
        code, text = run(program, self.folder, f"{self.folder}/inputs", "own")
        self.expect("runs", code == 0, text)
        session = onnxruntime.InferenceSession(f"{self.folder}/model.onnx", providers=["CPUExecutionProvider"])
        feeds = {info.name: numpy.load(f"{self.folder}/inputs/{i}.npy") for i, info in enumerate(session.get_inputs())}
        for i, expected in enumerate(session.run(None, feeds)):
            found = numpy.load(f"own/{i}.npy")
            self.expect(f"output {i} has the bits of onnxruntime", same_bits(found, numpy.asarray(expected)),
                        difference(found, expected))
        value = numpy.load(f"{self.folder}/outputs/0.npy")
        numpy.save(f"{self.folder}/outputs/0.npy", 2 * value + numpy.asarray(1, value.dtype) if value.dtype != bool
                   else ~value)
        code, text = run(program, self.folder)
        self.expect("finds a wrong output", code == 1 and "failed" in text, text)


def check_page(checks, prefix):
    """Runs the first commands of docs/codegen.md, and finds the listing in the source that they write."""
    with open(f"{ROOT}/docs/codegen.md", encoding="utf-8") as file:
        blocks = [[line[4:] for line in block.splitlines()] for block in file.read().split("\n\n")
                  if block.startswith("    ")]
    commands, listing = blocks[0], blocks[1] + [""] + blocks[2]
    os.makedirs("page/bin")
    os.symlink(checks.mscgym_path, "page/bin/mscgym")
    for name in ("digits.onnx", "calibration.npz"):
        shutil.copy(f"{ROOT}/examples/digits/{name}", "page")
    path = os.path.abspath("page/bin") + ":" + os.environ["PATH"]
    for command in commands + ["digits/build/run_digits digits"]:
        code, text = run("bash", "-c", command, cwd="page", env=dict(os.environ, PATH=path, CMAKE_PREFIX_PATH=prefix))
        checks.expect(f"page: {command}", code == 0, text)
    with open("page/digits/network.c", encoding="utf-8") as file:
        checks.expect("page: the listing", "\n".join(listing) in file.read())


def install(build, prefix):
    for component in ("library", "development"):
        code, text = run("cmake", "--install", build, "--prefix", prefix, "--component", component)
        if code != 0:
            sys.exit(f"installing {build}: {text}")


def ort_settings():
    """What cmake needs to find onnxruntime, or None."""
    include = os.environ.get("MSC_ONNXRUNTIME_INCLUDE", "/usr/include/onnxruntime")
    capi = os.path.join(os.path.dirname(onnxruntime.__file__), "capi")
    libraries = glob.glob(f"{capi}/libonnxruntime.so*")
    if not os.path.exists(f"{include}/onnxruntime_cxx_api.h") or not libraries:
        print("skipped: programs in C++: no headers of onnxruntime (MSC_ONNXRUNTIME_INCLUDE), or no library")
        return None
    os.makedirs("ort", exist_ok=True)
    os.symlink(libraries[0], "ort/libonnxruntime.so.1")  # the name that programs load
    os.symlink(libraries[0], "ort/libonnxruntime.so")
    folder = os.path.abspath("ort")
    return [f"-DONNXRUNTIME_INCLUDE={include}", f"-DONNXRUNTIME_LIBRARY={folder}/libonnxruntime.so",
            f"-DCMAKE_BUILD_RPATH={folder}"]


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, names = os.path.abspath(sys.argv[2]), sys.argv[3:] or [*NETWORKS]
    checks = Checks(sys.argv[1])
    prefix = os.path.abspath("prefix")
    install(build, prefix)
    check_page(checks, prefix)
    to_ort = ort_settings()
    for i, name in enumerate(names):
        try:
            model, inputs, more = NETWORKS[name](checks)
        except LookupError as why:
            print(f"skipped: {name}: {why}")
            continue
        before = checks.failed
        program = CProgram(checks, name, f"c{i}", [f"-DCMAKE_PREFIX_PATH={prefix}"])
        if program.generate(checks, model, inputs, more, "c"):
            program.check(model)
        if to_ort:
            program = OrtProgram(checks, f"{name} in C++", f"ort{i}", to_ort)
            if program.generate(checks, model, inputs, more, "onnxruntime"):
                program.check(model)
        print(f"{name}: {'passed' if checks.failed == before else 'FAILED'}", flush=True)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
