#!/usr/bin/env python3
"""Checks import and export against ONNX Runtime: a model and onnx_tool's copy of it must agree.

usage: check_export.py ONNX_TOOL files|models|nodes|newest|more|quantized

files      the small models next to this script, except those that must be refused
models     real networks ($MSC_MODELS), with equal outputs at the default optimisation level and
           without optimisation, symbolic and bound, with and without batch normalisation
nodes      the conformance cases of libonnx-testdata for supported operators
newest     the node cases of onnx 1.23 ($MSC_MODELS): valid, and loaded by ONNX Runtime
more       the cases of tests/conformance/more
quantized  integers after QuantizeLinear, and stored weights, equal numpy's

Exits with 77 if onnxruntime, onnx or the data are missing.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    import onnx
    import onnxruntime
    from onnx import numpy_helper
except ImportError as error:
    print(f"skipped: {error}; needs numpy, onnx and onnxruntime")
    sys.exit(77)

MODELS = os.environ.get("MSC_MODELS", os.path.expanduser("~/.cache/mscgym/models"))
FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "files")
CASES = "/usr/share/libonnx-testdata/data/node"
MORE = os.path.join(os.path.dirname(FILES), "..", "conformance", "more")
LEVELS = (onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
          onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)

# Input shapes, and the bindings that lead to them.
REAL = {
    "mlsd-tiny": ([(1, 320, 320, 4)], []),
    "mobilenet_v2": ([(2, 3, 224, 224)], ["N=2"]),
    "ocr-det": ([(1, 3, 640, 640)], ["p2o.DynamicDimension.0=1", "p2o.DynamicDimension.1=640",
                                     "p2o.DynamicDimension.2=640"]),
    "ocr-rec": ([(8, 3, 48, 320)], ["p2o.DynamicDimension.0=8", "p2o.DynamicDimension.1=320"]),
    "resnet18": ([(2, 3, 224, 224)], ["N=2"]),
    "speech-embedding": ([(3, 76, 32, 1)], ["unk__314=3"]),
    "squeezenet1_1": ([(2, 3, 224, 224)], ["N=2"]),
}


def session(model, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 3
    # Products with weights of 4 bits compute with floats.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    source = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def convert(tool, source, target, *arguments):
    done = subprocess.run([tool, source, target, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def largest_difference(expected, found):
    worst = 0.0
    for a, b in zip(expected, found):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise RuntimeError(f"expected {a.dtype}{a.shape}, found {b.dtype}{b.shape}")
        if a.size:
            finite = numpy.abs(a.astype(numpy.float64))[numpy.isfinite(a)]
            scale = max(1.0, float(finite.max(initial=0)))
            with numpy.errstate(invalid="ignore"):  # equal infinities give NaN
                difference = numpy.abs(a.astype(numpy.float64) - b.astype(numpy.float64))
            worst = max(worst, float(numpy.nanmax(numpy.where(a == b, 0, difference))) / scale)
    return worst


def real_inputs(name, model):
    generator = numpy.random.RandomState(0)
    shapes = REAL[name][0] if REAL[name] else [
        [d.dim_value or 2 for d in i.type.tensor_type.shape.dim] for i in model.get_inputs()]
    feeds = {}
    for value, shape in zip(model.get_inputs(), shapes):
        x = generator.normal(size=shape)
        feeds[value.name] = (numpy.floor(x * 40 + 128) if name == "mlsd-tiny" else x).astype(
            numpy.float32)
    return feeds


def real_models():
    names = [name for name in REAL if REAL[name] and
             os.path.exists(os.path.join(MODELS, name + ".onnx"))]
    if not names:
        print("skipped: run scripts/fetch-models")
        sys.exit(77)
    return names


def check_models(tool, folder):
    failures = 0
    for name in real_models():
        source = os.path.join(MODELS, name + ".onnx")
        target = os.path.join(folder, "model.onnx")
        bindings = [part for b in REAL[name][1] for part in ("--bind", b)]
        for extra, bound in ((["--keep-batch-norm"], 0.0), ([], 1e-5),
                             (bindings, 1e-5), (["--keep-batch-norm"] + bindings, 0.0)):
            convert(tool, source, target, *extra)
            for level in LEVELS:
                original, written = session(source, level), session(target, level)
                feeds = real_inputs(name, original)
                names = [o.name for o in original.get_outputs()]
                same_names = names == [o.name for o in written.get_outputs()]
                worst = largest_difference(original.run(names, feeds), written.run(None, feeds))
                # In bound models the runtime may choose another, equally valid order of
                # summation.
                ok = same_names and worst <= max(bound, 1e-5 if bindings and extra else bound)
                failures += not ok
                print(f"{'ok  ' if ok else 'FAIL'} {name} {' '.join(extra)} {level}: {worst:.3g}")
    return failures


def without_double_names(path):
    """The path or, if node names are not unique, of a copy without them: the runtime refuses
    duplicates."""
    model = onnx.load(path, load_external_data=False)
    names = [node.name for node in model.graph.node if node.name]
    if len(names) == len(set(names)):
        return path
    for node in model.graph.node:
        node.ClearField("name")
    return model


def numbers_for(value, generator):
    """Normal random numbers, rounded for integer inputs. A boolean is a condition: one element."""
    length = 1 if value.type == "tensor(bool)" else 4
    array = generator.normal(size=[d if isinstance(d, int) else length for d in value.shape])
    return array.astype({"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64,
                         "tensor(bool)": bool}[value.type])


def has_external(path):
    """Whether operators are of a domain that the runtime does not know."""
    domains = {entry.domain for entry in onnx.load(path, load_external_data=False).opset_import}
    return not domains <= {"", "ai.onnx", "ai.onnx.ml", "com.microsoft"}


def check_files(tool, folder):
    failures = checked = 0
    for name in sorted(os.listdir(FILES)):
        source, target = os.path.join(FILES, name), os.path.join(folder, "model.onnx")
        # Loops whose number of iterations depends on these inputs may never end. The runtime has no
        # kernel for BatchNormalization of opset 6 and fails on its unnamed outputs.
        if not name.endswith(".onnx") or name.startswith(("loop_", "training_")) or has_external(source):
            continue
        try:
            convert(tool, source, target)
        except RuntimeError:
            continue  # test_onnx_import.c lists these and the reasons
        checked += 1
        for level in LEVELS:
            original = session(without_double_names(source), level)
            written = session(target, level)
            generator = numpy.random.RandomState(0)
            feeds = {i.name: numbers_for(i, generator) for i in written.get_inputs()}
            names = [o.name for o in original.get_outputs()]
            # An output with an input's name gets another name, because a value has one producer.
            worst = largest_difference(original.run(names, feeds), written.run(None, feeds))
            ok = worst <= 1e-6
            failures += not ok
            print(f"{'ok  ' if ok else 'FAIL'} {name} {level}: {worst:.3g}")
    return failures if checked >= 12 else 1


def load_tensor(path):
    tensor = onnx.TensorProto()
    with open(path, "rb") as file:
        tensor.ParseFromString(file.read())
    return numpy_helper.to_array(tensor)


def fix_parameters(model, folder):
    """Turns inputs that are parameters into initialisers, so that constant forms are checked."""
    feeds = {}
    keep = []
    for i, value in enumerate(model.graph.input):
        array = load_tensor(os.path.join(folder, "test_data_set_0", f"input_{i}.pb"))
        is_parameter = i > 0 and (array.dtype in (numpy.int64, numpy.int32) or
                                  model.graph.node[0].op_type in (
                                      "Conv", "ConvTranspose", "BatchNormalization", "Clip", "Pad",
                                      "Resize", "Upsample", "Dropout", "Gemm"))
        if is_parameter:
            model.graph.initializer.append(numpy_helper.from_array(array, value.name))
        else:
            keep.append(value)
            feeds[value.name] = array
    del model.graph.input[:]
    model.graph.input.extend(keep)
    return feeds


# Messages of intended refusals.
REFUSED = re.compile(r"unsupported operator|float32 networks only|not a tensor with a known number|"
                     r"spatial axes, expected 2|training_mode|an extra output of|opset [0-5],|"
                     r"to string|its axes|the value|are computed|does not exist|unsupported type string|"
                     r"no Scan with a batch axis")
# Messages of the runtime when it has no kernel, or the operator is external to both programs.
LACKING = re.compile(r"NOT_IMPLEMENTED|Batchwise recurrent operations|empty set with bool type|"
                     r"is not a registered function/op")


def check_nodes(tool, folder):
    if not os.path.isdir(CASES):
        print("skipped: libonnx-testdata is not installed")
        sys.exit(77)
    failures = passed = refused = 0
    # numpy has no bfloat16; a dimension of 0 means unknown; random operators differ each time.
    for case in sorted(os.listdir(CASES)):
        if "BFLOAT16" in case or "bernoulli" in case or case == "test_split_zero_size_splits":
            continue
        path = os.path.join(CASES, case)
        source, target = os.path.join(folder, "in.onnx"), os.path.join(folder, "out.onnx")
        model = onnx.load(os.path.join(path, "model.onnx"))
        try:
            feeds = fix_parameters(model, path)
        except Exception:  # sequences, strings and optionals are out of scope
            refused += 1
            continue
        onnx.save(model, source)
        try:
            convert(tool, source, target)
        except RuntimeError as error:
            if REFUSED.search(str(error)):
                refused += 1
            else:
                failures += 1
                print(f"FAIL {case}: {error}")
            continue
        try:
            count = len(model.graph.output)
            expected = [load_tensor(os.path.join(path, "test_data_set_0", f"output_{i}.pb"))
                        for i in range(count)]
            for level in LEVELS:
                written = session(target, level)
                inputs = {i.name: feeds[i.name] for i in written.get_inputs()}
                found = written.run(None, inputs)
                worst = largest_difference(expected, found)
                if worst > 1e-5:  # the runtime computes some cases differently
                    worst = largest_difference(session(source, level).run(None, feeds), found)
                if worst > 1e-5:
                    raise RuntimeError(f"off by {worst:.3g}")
            passed += 1
        except Exception as error:
            if LACKING.search(str(error)):
                refused += 1
                continue
            failures += 1
            print(f"FAIL {case}: {str(error)[:300]}")
    print(f"{passed} cases passed, {refused} are of no concern to us, {failures} failed")
    return failures


def check_newest(tool, folder):
    """Copies of the cases of $MSC_MODELS/onnx-1.23 must be valid and load in the runtime."""
    data = os.path.join(MODELS, "onnx-1.23", "node")
    if not os.path.isdir(data):
        print("skipped: run scripts/fetch-models")
        sys.exit(77)
    failures = passed = refused = lacking = 0
    target = os.path.join(folder, "out.onnx")
    for case in sorted(os.listdir(data)):
        try:
            convert(tool, os.path.join(data, case, "model.onnx"), target)
        except RuntimeError:
            refused += 1  # the conformance tests list these and the reasons
            continue
        try:
            onnx.checker.check_model(target, full_check=True)
            session(target, LEVELS[0])
            passed += 1
        except Exception as error:
            if LACKING.search(str(error)):
                lacking += 1
                continue
            failures += 1
            print(f"FAIL {case}: {str(error)[:300]}")
    print(f"{passed} cases passed, {refused} are refused, {lacking} lack a kernel, {failures} failed")
    return failures if passed >= 1600 else 1


def check_more(tool, folder):
    failures = passed = lacking = 0
    for case in sorted(os.listdir(MORE)):
        path = os.path.join(MORE, case)
        target = os.path.join(folder, "out.onnx")
        model = onnx.load(os.path.join(path, "model.onnx"))
        weights = {t.name for t in model.graph.initializer}
        names = [i.name for i in model.graph.input if i.name not in weights]
        data = os.path.join(path, "test_data_set_0")
        try:
            convert(tool, os.path.join(path, "model.onnx"), target)
            feeds = {name: load_tensor(os.path.join(data, f"input_{i}.pb"))
                     for i, name in enumerate(names)}
            expected = [load_tensor(os.path.join(data, f"output_{i}.pb"))
                        for i in range(len(model.graph.output))]
            onnx.checker.check_model(target, full_check=True)
            for level in LEVELS:
                worst = largest_difference(expected, session(target, level).run(None, feeds))
                # The runtime rounds an average of bytes once, to its step of 1/8.
                if not worst <= (0.13 if case.startswith("quantized_average") else 1e-5):
                    raise RuntimeError(f"off by {worst:.3g}")
            passed += 1
        except Exception as error:
            if LACKING.search(str(error)) or "ONNX has no equivalent of quantize with" in str(error):
                lacking += 1
                continue
            failures += 1
            print(f"FAIL {case}: {str(error)[:300]}")
    print(f"{passed} cases passed, {lacking} lack a kernel or a form, {failures} failed")
    return failures


def unpack(tensor):
    """The integers of an initialiser; 4-bit integers are stored two in a byte."""
    if tensor.data_type not in (21, 22):
        return numpy_helper.to_array(tensor).astype(numpy.int64)
    raw = numpy.frombuffer(tensor.raw_data, numpy.uint8)
    values = numpy.stack([raw & 15, raw >> 4], 1).ravel().astype(numpy.int64)
    values = values[:int(numpy.prod(tensor.dims, dtype=numpy.int64))].reshape(list(tensor.dims))
    return numpy.where(values > 7, values - 16, values) if tensor.data_type == 22 else values


def broadcast(values, axis, rank, dtype):
    shape = [1] * rank
    if axis >= 0:
        shape[axis] = -1
    return numpy.array(values, dtype).reshape(shape)


def quantize(x, edit):
    scale = broadcast(edit["scales"], edit["axis"], x.ndim, numpy.float32)
    zero = broadcast(edit["zero_points"], edit["axis"], x.ndim, numpy.int64)
    q = numpy.clip(numpy.rint(x / scale).astype(numpy.float64) + zero, edit["low"], edit["high"])
    return q.astype(numpy.int64), ((q - zero).astype(numpy.float32) * scale)


def matches(edit, inits, node, kind):
    scales = numpy_helper.to_array(inits[node.input[1]]).ravel()
    zeros = unpack(inits[node.input[2]]).ravel()
    return (edit["kind"] == kind and len(scales) == len(edit["scales"]) and
            numpy.array_equal(scales, numpy.array(edit["scales"], numpy.float32)) and
            numpy.array_equal(zeros, edit["zero_points"]))


def check_weights(model, inits, floats, edits):
    count = 0
    for node in model.graph.node:
        if node.op_type != "DequantizeLinear" or node.input[0] not in inits:
            continue
        stored = unpack(inits[node.input[0]])
        base = node.input[0][:-len("_quantized")]
        edit = next(e for e in edits if e["value"] == base and matches(e, inits, node, "weight"))
        if not numpy.array_equal(stored, quantize(floats[base], edit)[0]):
            raise RuntimeError(f"stored integers of {base} differ from numpy's")
        count += 1
    return count


def check_activations(model, inits, edits, feeds):
    """Computes every value after a QDQ pair with numpy and compares."""
    makers = {output: node for node in model.graph.node for output in node.output}
    pairs = []
    for node in model.graph.node:
        quantizer = makers.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if quantizer is None or quantizer.op_type != "QuantizeLinear":
            continue
        source = quantizer.input[0]
        if source.endswith("_clipped") or "_clipped_" in source:
            source = makers[source].input[0]
        fits = [e for e in edits if e["value"] == source and
                matches(e, inits, quantizer, "activation")]
        pairs.append((source, node.output[0], fits[0]))
    known = {value.name for value in model.graph.output}
    for name in {name for pair in pairs for name in pair[:2]} - known - set(feeds):
        model.graph.output.append(onnx.helper.make_tensor_value_info(name, 1, None))
    for level in LEVELS:
        run = session(model, level)
        values = dict(zip([o.name for o in run.get_outputs()], run.run(None, feeds)))
        values.update(feeds)
        for source, result, edit in pairs:
            if not numpy.array_equal(values[result], quantize(values[source], edit)[1]):
                raise RuntimeError(f"{source}: onnxruntime's integers differ from numpy's")
    return len(pairs)


def check_quantized(tool, folder):
    failures = 0
    real_models()
    for name in ("squeezenet1_1", "mlsd-tiny", "ocr-rec"):
        source = os.path.join(MODELS, name + ".onnx")
        plain, target = os.path.join(folder, "plain.onnx"), os.path.join(folder, "q.onnx")
        convert(tool, source, plain)
        floats = {t.name: numpy_helper.to_array(t) for t in onnx.load(plain).graph.initializer}
        for bits in (8, 4, 16, 6, 3, 12, 2):
            edits = convert(tool, source, target, "--quantize", str(bits), str(100 + bits))
            try:
                for level in LEVELS:
                    run = session(target, level)
                    feeds = real_inputs(name, run)
                    outputs = run.run(None, feeds)
                    if not all(numpy.isfinite(o).all() for o in outputs):
                        raise RuntimeError("outputs are not finite")
                model = onnx.load(target)
                inits = {t.name: t for t in model.graph.initializer}
                n_weights = check_weights(model, inits, floats, edits)
                n_pairs = check_activations(model, inits, edits, feeds)
                metadata = {p.key: p.value for p in model.metadata_props}
                if metadata != {"mscgym.test": "check_export"}:
                    raise RuntimeError(f"metadata is {metadata}")
                print(f"ok   {name} {bits} bits: {n_weights} weights, {n_pairs} activations, "
                      f"{os.path.getsize(target)} bytes")
            except Exception as error:
                failures += 1
                print(f"FAIL {name} {bits} bits: {str(error)[:400]}")
    return failures


def main():
    tool, what = sys.argv[1:3]
    checks = {"files": check_files, "models": check_models, "nodes": check_nodes, "newest": check_newest,
              "more": check_more, "quantized": check_quantized}
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(1 if checks[what](tool, folder) else 0)


main()
