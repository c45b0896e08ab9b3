#!/usr/bin/env python3
"""Makes the model of the case `tokens`. Needs numpy, onnx and onnxruntime.

- decoder.onnx: logits of token ids, by one layer of attention with a mask, positions and a past,
  with the names that exporters of language models use.
- decoder_ids.npy: 320 token ids, a flat text. decoder_ids.jsonl: the same in 20 lines.
- decoder.json: from ONNX Runtime, the cross entropy of the last 4 of 20 samples of 16 ids each,
  without a past: the mean of -log p(next id). Also the first 4 rows of the table of ids, and the
  least squared error of each in integers from -8 to 7, over a fine grid of scales.
"""
import json
import os

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
VOCABULARY, WIDTH, LENGTH, SAMPLES = 40, 32, 16, 20


def make_model(rng):
    def draw(*shape):
        return (1.5 * rng.randn(*shape) / numpy.sqrt(shape[0])).astype("float32")

    arrays = {"table": 3 * draw(VOCABULARY, WIDTH), "places": draw(LENGTH, WIDTH),
              "head": draw(WIDTH, VOCABULARY), "one": numpy.array([1], "int64"),
              "middle": numpy.array([1, 2], "int64")}
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["words"], name="words"),
             helper.make_node("Gather", ["places", "position_ids"], ["at"], name="at"),
             helper.make_node("Add", ["words", "at"], ["x"], name="x")]
    for part in "qkv":
        arrays["w" + part] = draw(WIDTH, WIDTH)
        nodes += [helper.make_node("MatMul", ["x", "w" + part], [part + "2"], name=part),
                  helper.make_node("Unsqueeze", [part + "2", "one"], [part], name=part + "_head")]
    past, present = "past_key_values.0.", "present.0."
    nodes += [helper.make_node("Concat", [past + "key", "k"], [present + "key"], axis=2),
              helper.make_node("Concat", [past + "value", "v"], [present + "value"], axis=2),
              helper.make_node("Transpose", [present + "key"], ["turned"], perm=[0, 1, 3, 2]),
              helper.make_node("MatMul", ["q", "turned"], ["scores"], name="scores"),
              helper.make_node("Cast", ["attention_mask"], ["shown"], to=TensorProto.FLOAT),
              helper.make_node("Unsqueeze", ["shown", "middle"], ["mask"]),
              helper.make_node("Mul", ["scores", "mask"], ["masked"]),
              helper.make_node("Softmax", ["masked"], ["p"], axis=-1),
              helper.make_node("MatMul", ["p", present + "value"], ["mixed4"], name="mixed"),
              helper.make_node("Squeeze", ["mixed4", "one"], ["mixed"]),
              helper.make_node("Add", ["mixed", "x"], ["y"]),
              helper.make_node("MatMul", ["y", "head"], ["logits"], name="head")]

    def value(name, kind, shape):
        return helper.make_tensor_value_info(name, kind, shape)

    cache = {kind: ["batch", 1, kind, WIDTH] for kind in ("past", "total")}
    floats, whole = TensorProto.FLOAT, TensorProto.INT64
    graph = helper.make_graph(
        nodes, "decoder",
        [value("input_ids", whole, ["batch", "sequence"]),
         value("attention_mask", whole, ["batch", "total"]),
         value("position_ids", whole, ["batch", "sequence"])] +
        [value(past + part, floats, cache["past"]) for part in ("key", "value")],
        [value("logits", floats, ["batch", "sequence", VOCABULARY])] +
        [value(present + part, floats, cache["total"]) for part in ("key", "value")],
        [numpy_helper.from_array(a, n) for n, a in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    return model


def least_errors(rows):
    scales = numpy.abs(rows).max(1)[:, None] * numpy.linspace(1 / 28, 1 / 6, 2000)
    codes = numpy.clip(numpy.rint(rows[:, None] / scales[..., None]), -8, 7)
    return ((codes * scales[..., None] - rows[:, None]) ** 2).sum(-1).min(1)


def main():
    rng = numpy.random.RandomState(7)
    path = os.path.join(HERE, "decoder.onnx")
    model = make_model(rng)
    onnx.save(model, path)
    table = numpy_helper.to_array(model.graph.initializer[0])[:4]
    ids = rng.randint(0, VOCABULARY, LENGTH * SAMPLES)
    numpy.save(os.path.join(HERE, "decoder_ids.npy"), ids.astype("int64"))
    with open(os.path.join(HERE, "decoder_ids.jsonl"), "w") as file:
        for i, row in enumerate(ids.reshape(SAMPLES, LENGTH).tolist()):
            file.write(json.dumps(row if i % 2 else {"ids": row}) + "\n")
    rows = ids.reshape(SAMPLES, LENGTH)[-4:].astype("int64")
    empty = numpy.zeros([4, 1, 0, WIDTH], "float32")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    logits = session.run(["logits"], {
        "input_ids": rows, "attention_mask": numpy.ones_like(rows),
        "position_ids": numpy.arange(LENGTH)[None].repeat(4, 0),
        "past_key_values.0.key": empty, "past_key_values.0.value": empty})[0].astype("float64")
    log_p = logits - numpy.log(numpy.exp(logits).sum(-1, keepdims=True))
    found = -numpy.take_along_axis(log_p[:, :-1], rows[:, 1:, None], -1).mean()
    with open(os.path.join(HERE, "decoder.json"), "w") as file:
        json.dump({"cross_entropy": float(found), "table": table.tolist(),
                   "least_errors": least_errors(table).tolist()}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
