#!/usr/bin/env python3
"""Checks that exported models keep the metadata of the original file.

    check_notes.py MSCGYM

These are metadata_props, doc_string, model_version and domain of the model, and doc_string of its
graph, inputs and outputs. They must survive `quantize`, a search's delivery, and `export` of a
record, a strategy, other weights, a pruned model and a float model, and MSCGraph JSON. Keys that
start with "mscgym." are mscgym's own. Text that is not UTF-8, or is long, is not changed. Of repeated
keys the last one counts, as in onnxruntime. A tensor that is both input and output keeps both texts.
"""
import json
import shutil
import sys

from small_onnx import Checks, make, node, numpy, onnx, onnxruntime

rng = numpy.random.default_rng(5)
METADATA = {"names": "{0: 'cat', 1: 'dog'}", "stride": "32", "empty": "", "unicode": "Größe ≤ 3 µm",
            "lines": "a\n\tb\\\"c", "large": "x" * 3_000_000}
STALE = {"mscgym.program": "another", "mscgym.trial": "77"}


def f(*shape):
    return rng.standard_normal(shape).astype(numpy.float32)


def annotate(model):
    for key, value in {**METADATA, **STALE}.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = key, value
    model.doc_string, model.domain, model.model_version = "made by us", "org.example", 2 ** 60 + 1
    model.producer_name, model.graph.doc_string = "pytorch", "licence: ours"
    model.graph.input[0].doc_string = "RGB, 0 to 1"
    model.graph.output[0].doc_string = "logits"


def make_model(changes=annotate):
    return make("m.onnx", [node("Conv", ["x", "w"], ["t"]), node("Relu", ["t"], ["u"]),
                           node("Conv", ["u", "v"], ["y"])], {"x": ["n", 3, 8, 8]},
                {"y": ["n", 2, 6, 6]}, {"w": f(8, 3, 3, 3), "v": f(2, 8, 1, 1)}, changes=changes)


def check_file(checks, what, path, own=("mscgym.program",)):
    model = onnx.load(path)
    found = [(entry.key, entry.value) for entry in model.metadata_props]
    keys = [key for key, _ in found]
    metadata = dict(found)
    checks.expect(f"{what}: metadata", all(metadata.get(k) == v for k, v in METADATA.items()),
                  sorted(metadata))
    checks.expect(f"{what}: each key once, ours are new", len(keys) == len(set(keys)) and
                  all(k in metadata and metadata[k] != STALE.get(k) for k in own) and
                  metadata.get("mscgym.trial") != "77", sorted(metadata))
    texts = (model.doc_string, model.domain, model.model_version, model.graph.doc_string,
             model.graph.input[0].doc_string, model.graph.output[0].doc_string)
    checks.expect(f"{what}: texts", texts == ("made by us", "org.example", 2 ** 60 + 1,
                                              "licence: ours", "RGB, 0 to 1", "logits"), texts)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    checks.expect(f"{what}: onnxruntime reads it",
                  session.get_modelmeta().custom_metadata_map.get("stride") == "32")


def search(checks, section, model, workspace, weights=None):
    configuration = {"model": model, "workspace": workspace, "dataset": {"inputs": "inputs.npz"},
                     **section}
    with open("search.json", "w", encoding="utf-8") as file:
        json.dump(configuration, file)
    code, text = checks.mscgym("search", "search.json", "--threads", 1, "--quiet")
    return checks.expect(f"search in {workspace}", code == 0, text)


def export(checks, what, *arguments):
    code, text = checks.mscgym("export", *arguments, "-o", "e.onnx")
    if checks.expect(f"{what}: written", code == 0, text):
        check_file(checks, what, "e.onnx")


def quantize(checks, model, output):
    code, text = checks.mscgym("quantize", model, "--inputs", "inputs.npz", "-o", output,
                               "--threads", 1)
    checks.expect(f"quantize {model}", code == 0, text)
    return text


def check_exports(checks):
    numpy.savez("inputs.npz", x=f(32, 3, 8, 8))
    text = quantize(checks, "m.onnx", "q.onnx")
    checks.expect("quantize: says so", f"metadata: {len(METADATA)} entries" in text, text)
    check_file(checks, "quantize", "q.onnx", own=("mscgym.program", "mscgym.strategy"))
    entry = {"agent": {"type": "random"}, "budget": {"trials": 3}}
    search(checks, {"quantize": {"gym": [{**entry, "env": {"choices": [{"bits": 8}]}}]}}, "m.onnx",
           "bits")
    check_file(checks, "delivered", "bits/m.onnx",
               own=("mscgym.program", "mscgym.strategy", "mscgym.record"))
    export(checks, "export of a record", "bits/quantize_0.jsonl")
    export(checks, "export of a strategy", "--model", "m.onnx", "--strategy",
           "bits/msc_quantize.json")
    numpy.savez("weights.npz", w=f(8, 3, 3, 3))
    export(checks, "export with weights", "--model", "m.onnx", "--weights", "weights.npz",
           "--strategy", "bits/msc_quantize.json", "--recalibrate", "--dataset", "inputs.npz")
    search(checks, {"prune": {"gym": [entry]}}, "m.onnx", "pruned")
    check_file(checks, "pruned", "pruned/m.onnx")
    quantize(checks, "q.onnx", "again.onnx")
    check_file(checks, "quantised again", "again.onnx")


def check_json(checks):
    code, text = checks.mscgym("graph", "m.onnx", "-o", "g.json")
    checks.expect("graph -o", code == 0, text)
    quantize(checks, "g.json", "j.onnx")
    check_file(checks, "through MSCGraph JSON", "j.onnx")
    make_model(lambda model: None)
    code, text = checks.mscgym("graph", "m.onnx", "--json", "--quiet")
    with open("plain.json", "w", encoding="utf-8") as file:
        file.write(text)
    checks.expect("without other notes JSON has the opset", code == 0 and
                  json.loads(text).get("notes") == {"opset": 17}, text[-200:])
    code, text = checks.mscgym("graph", "plain.json", "--json", "--quiet")
    with open("plain.json", encoding="utf-8") as file:
        checks.expect("JSON reads as the same", code == 0 and text == file.read())
    damage_opset(checks)


def damage_opset(checks):
    with open("plain.json", encoding="utf-8") as file:
        graph = json.load(file)
    for opset in (0, 29, -3, 17.5, "new", None, [17], 2 ** 32 + 17):
        graph["notes"] = {"opset": opset}
        with open("damaged.json", "w", encoding="utf-8") as file:
            json.dump(graph, file)
        code, text = checks.mscgym("graph", "damaged.json", "--quiet")
        checks.expect(f"opset {opset!r} in JSON", code == 1 and text.count("\n") == 1 and
                      text.startswith('mscgym: damaged.json: notes: "opset" is '), text)
    graph.pop("notes")
    with open("damaged.json", "w", encoding="utf-8") as file:
        json.dump(graph, file)
    code, text = checks.mscgym("graph", "damaged.json", "--json", "--quiet")
    checks.expect("JSON without notes stays so", code == 0 and '"notes"' not in text, text[-200:])


def make_twice(repeated):
    """A model whose x is both input and output, with repeated entries."""
    def changes(model):
        for key, value in repeated:
            entry = model.metadata_props.add()
            entry.key, entry.value = key, value
        model.graph.input[0].doc_string = "in"
        model.graph.output[0].doc_string = "out of y"
        output = model.graph.output.add()
        output.CopyFrom(model.graph.input[0])
        output.doc_string = "out of x"
    return make("m.onnx", [node("Gemm", ["x", "w"], ["t"]), node("Relu", ["t"], ["u"]),
                           node("Gemm", ["u", "v"], ["y"])], {"x": ["n", 4]}, {"y": ["n", 5]},
                {"w": f(4, 16), "v": f(16, 5)}, changes=changes)


def check_repeated(checks):
    numpy.savez("inputs.npz", x=f(32, 4))
    entry = {"agent": {"type": "random"}, "budget": {"trials": 2}}
    for repeated in ([("names", "a"), ("names", "b"), ("k", "1"), ("names", "c")], [("", "1"), ("", "2")],
                     [("k", "1"), ("k", "")], [("K", "1"), ("k", "2"), ("k", "2")],
                     [("ключ", "1"), ("b", "2"), ("ключ", "3"), ("b", "4")], []):
        path = make_twice(repeated)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        expected = session.get_modelmeta().custom_metadata_map
        for form in ("--json", "--sites"):
            _, direct = checks.mscgym("graph", "m.onnx", form, "--quiet")
            checks.mscgym("graph", "m.onnx", "-o", "g.json", "--quiet")
            code, text = checks.mscgym("graph", "g.json", form, "--quiet")
            checks.expect(f"{repeated}: {form} of its JSON", code == 0 and text == direct, text[-200:])
        for model in ("m.onnx", "g.json"):
            what = f"{repeated}, {model}"
            shutil.rmtree("twice", ignore_errors=True)
            if not search(checks, {"prune": {"gym": [entry]}}, model, "twice"):
                continue
            made = onnx.load("twice/m.onnx" if model == "m.onnx" else "twice/g.onnx")
            keys = [e.key for e in made.metadata_props]
            found = {e.key: e.value for e in made.metadata_props if not e.key.startswith("mscgym.")}
            checks.expect(f"{what}: as onnxruntime has them", found == expected and
                          len(keys) == len(set(keys)), (keys, found))
            texts = [{value.name: value.doc_string for value in values}
                     for values in (made.graph.input, made.graph.output)]
            checks.expect(f"{what}: texts of inputs and outputs", texts == [
                {"x": "in"}, {"y": "out of y", "x": "out of x"}], texts)
            checks.expect(f"{what}: opset", made.opset_import[0].version == 17, made.opset_import)


def check_handed_on(checks):
    """In a quantised model, an output that is an input, or a copy of it, is passed on unchanged."""
    x = f(32, 4)
    numpy.savez("inputs.npz", x=x)
    for has_copy in (False, True):
        make_twice([])
        model = onnx.load("m.onnx")
        if has_copy:
            model.graph.node.append(node("Identity", ["x"], ["z"]))
            model.graph.output[1].name = "z"
            onnx.save(model, "m.onnx")
        quantize(checks, "m.onnx", "q.onnx")
        try:
            session = onnxruntime.InferenceSession("q.onnx", providers=["CPUExecutionProvider"])
            given = session.run([model.graph.output[1].name], {"x": x})[0]
            checks.expect(f"quantised, handed on, {has_copy}", numpy.array_equal(given, x))
        except Exception as error:  # any exception means that the model is invalid
            checks.expect(f"quantised, handed on, {has_copy}", False, error)


def check_bytes(checks):
    """Bytes that are not UTF-8, and empty entries, are no errors."""
    def strange(model):
        annotate(model)
        model.metadata_props[0].value = "PLAC"
        model.metadata_props.add()
    with open(make_model(strange), "rb") as file:
        data = file.read()
    with open("m.onnx", "wb") as file:
        file.write(data.replace(b"PLAC", b"\xff\xfe\xc3("))
    quantize(checks, "m.onnx", "q.onnx")
    found = onnx.load("q.onnx").metadata_props[0].value
    found = found if isinstance(found, bytes) else found.encode("utf-8", "surrogateescape")
    checks.expect("bytes that are no UTF-8", found == b"\xff\xfe\xc3(", found)
    code, text = checks.mscgym("graph", "m.onnx", "-o", "g.json")
    checks.expect("bytes that are no UTF-8, as JSON", code == 0, text)
    with open("g.json", encoding="utf-8") as file:
        notes = json.load(file)["notes"]
    checks.expect("JSON has the others", notes["metadata"]["stride"] == "32" and
                  "names" not in notes["metadata"], list(notes["metadata"]))


def main():
    checks = Checks(sys.argv[1])
    make_model()
    check_exports(checks)
    check_json(checks)
    check_bytes(checks)
    check_repeated(checks)
    check_handed_on(checks)
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
