"""What generated modules are made of: variables, constants, and the test that compiles a module. Imports TVM."""
from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Sequence

import numpy as np

from mscgym.graph import Array, GraphError
from mscgym.safetensors import read_safetensors
from mscgym.tvm.versions import device_array, name_of, relax, tensor_type, tirx, tvm, type_of


def symbol(name: str) -> Any:
    """A symbolic length."""
    return tirx.Var(name, "int64")


def largest(first: Any, second: Any) -> Any:
    return tirx.max(first, second)


def smallest(first: Any, second: Any) -> Any:
    return tirx.min(first, second)


def tensor(name: str, shape: Sequence[Any], dtype: str) -> Any:
    """A parameter of the module's function."""
    return relax.Var(name, tensor_type(list(shape), dtype))


def const(value: Any, dtype: str) -> Any:
    """A number, or a list of numbers, as a constant."""
    return relax.const(np.array(value, dtype), dtype)


def value(number: Any, dtype: str) -> Any:
    """A number that is an argument of an operator, not a tensor."""
    kind = tirx.FloatImm if dtype.startswith("float") else tirx.IntImm
    item = kind(dtype, number)
    return relax.PrimValue(item) if hasattr(relax, "PrimValue") else item


def dataflow(module: Any) -> Any:
    """The module with the bindings of its function in a dataflow block, where TVM's passes optimise them."""
    return relax.transform.ConvertToDataflow(1)(module)


def bind(module: Any, function: str, path: str | Path) -> Any:
    """The module with the weights of a file as constants. GraphError if the file lacks one."""
    arrays = read_safetensors(str(path))
    variables = module[function].params
    given = {name_of(item): arrays[name_of(item)] for item in variables if name_of(item) in arrays}
    return relax.transform.BindParams(function, {key: device_array(array) for key, array in given.items()})(module)


def call_loops(bb: Any, path: str | Path, operands: Sequence[Any], outputs: Sequence[tuple[Sequence[Any], str]]) -> Any:
    """A call of the function of loops whose text is in a file; `outputs` has the shape and type of each result."""
    path = Path(path)
    function = tvm.script.from_source(path.read_text(encoding="utf-8"))
    types = [tensor_type(list(shape), dtype) for shape, dtype in outputs]
    return relax.call_tir(bb.add_func(function, path.stem), list(operands), types[0] if len(types) == 1 else types)


def run(module: Any, function: str, inputs: Sequence[Array], level: int = 0) -> list[Array]:
    """Compiles a module for this machine's CPU and runs a function of it. `level` is LLVM's level of optimisation."""
    target = tvm.target.Target({"kind": "llvm", "opt-level": level})
    machine = relax.VirtualMachine(relax.build(module, target), tvm.cpu())
    return flat(machine[function](*[device_array(np.ascontiguousarray(item).reshape(item.shape)) for item in inputs]))


def flat(result: Any) -> list[Array]:
    """The arrays of a result, which may be a tuple."""
    return [result.numpy()] if hasattr(result, "numpy") else [item for part in result for item in flat(part)]


def compare(module: Any, function: str, path: str | Path, tolerance: float = 1e-4) -> int:
    """Runs a module on recorded inputs, and prints by how much its outputs differ from the recorded ones.

    The file has arrays "input/NAME" and "output/NUMBER". Returns 1 if an output differs by more than `tolerance` times
    the largest magnitude of the recorded output.
    """
    if not Path(path).exists():
        print(f"{path}: no recorded outputs")
        return 0
    arrays = read_safetensors(str(path))
    names = [name_of(item) for item in module[function].params]
    missing = [name for name in names if f"input/{name}" not in arrays]
    if missing:
        raise GraphError(f"{path}: no elements for the input '{missing[0]}'")
    found, is_fine = run(module, function, [arrays[f"input/{name}"] for name in names]), True
    for i, value in enumerate(found):
        expected = arrays[f"output/{i}"]
        most = float(np.abs(expected[np.isfinite(expected)]).max(initial=0))
        worst = float(np.nan_to_num(np.abs(value.astype(float) - expected)).max(initial=0))
        is_fine = is_fine and value.shape == expected.shape and worst <= tolerance * (most or 1.0)
        print(f"output {i}: {list(value.shape)}, largest difference {worst:.3g} of {most:.3g}")
    return 0 if is_fine else 1


def main(module: Any, function: str, folder: Path) -> None:
    """The test of a generated module: `python3 main.py`."""
    sys.exit(compare(module, function, folder / "baseline.safetensors"))


# ---- Integers with scales --------------------------------------------------------------------------------------------

def dynamic_quantize(bb: Any, x: Any) -> Any:
    """A tuple of x as bytes, their scale, and their zero point, as ONNX's DynamicQuantizeLinear has it: the range of x,
    extended to contain 0, becomes 0 to 255. An empty range has the scale 1."""
    op, zero = relax.op, const(0, "float32")
    low, high = bb.emit(op.minimum(op.min(x), zero)), bb.emit(op.maximum(op.max(x), zero))
    width = bb.emit(op.subtract(high, low))
    scale = bb.emit(op.where(op.greater(width, zero), op.divide(width, const(255, "float32")), const(1, "float32")))
    zero_point = bb.emit(op.astype(op.clip(op.round(op.divide(op.negative(low), scale)), 0, 255), "uint8"))
    return relax.Tuple([bb.emit(op.quantize(x, scale, zero_point, axis=-1, out_dtype="uint8")), scale, zero_point])


def shifted(integers: Any, zero_point: Any = None) -> Any:
    """Integers less their zero point, as int32."""
    wide = relax.op.astype(integers, "int32")
    return wide if zero_point is None else relax.op.subtract(wide, relax.op.astype(zero_point, "int32"))


# ---- Recurrent layers ------------------------------------------------------------------------------------------------

def recurrent(bb: Any, kind: str, x: Any, weight: Any, recurrence: Any, bias: Any, hidden: Any, cell: Any,
              direction: str, reset_last: bool = False) -> Any:
    """A recurrent layer as its joint describes it, with a few bindings for each step: x [time, batch, features],
    weights with a first axis of directions, gates in the order of ONNX.

    The result is a tuple: outputs [time, directions, batch, size], the last hidden state and, for an LSTM, the last
    cell state.
    """
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    results = [_one_way(bb, kind, x, [_part(bb, item, way) for item in (weight, recurrence, bias, hidden, cell)],
                        is_reversed, reset_last) for way, is_reversed in enumerate(ways)]
    op = relax.op
    outputs = bb.emit(op.stack([result[0] for result in results], axis=1))
    states = [bb.emit(op.stack([result[i] for result in results], axis=0)) for i in range(1, len(results[0]))]
    return relax.Tuple([outputs, *states])


def _part(bb: Any, item: Any, way: int) -> Any:
    """The part of a weight or a state that belongs to a direction."""
    return None if item is None else bb.emit(relax.op.take(item, relax.const(way, "int64"), axis=0))


def _split(bb: Any, item: Any, n: int, axis: int) -> list[Any]:
    """Equal parts along an axis; None for each part of None."""
    parts = None if item is None else bb.emit(relax.op.split(item, n, axis=axis))
    return [None if parts is None else bb.emit(parts[i]) for i in range(n)]


def _one_way(bb: Any, kind: str, x: Any, parts: Sequence[Any], is_reversed: bool, reset_last: bool) -> list[Any]:
    """The outputs [time, batch, size] and the last states [batch, size] of one direction."""
    op, (weight, recurrence, bias, hidden, cell) = relax.op, parts
    steps, batch = list(type_of(x).shape)[:2]
    size, dtype = list(type_of(recurrence).shape)[1], str(type_of(x).dtype)
    zeros = bb.emit(op.zeros([batch, size], dtype))
    state, memory = zeros if hidden is None else hidden, zeros if cell is None else cell
    first, second = _split(bb, bias, 2, 0)
    gates = bb.emit(op.matmul(x, op.permute_dims(weight, [1, 0])))
    gates = gates if bias is None else bb.emit(op.add(gates, first))
    turned = bb.emit(op.permute_dims(recurrence, [1, 0]))
    times = [*range(int(steps))][::-1 if is_reversed else 1]
    outputs: dict[int, Any] = {}
    for time in times:
        now = bb.emit(op.take(gates, relax.const(time, "int64"), axis=0))
        if kind == "gru":
            state = _gru(bb, now, state, turned, second, reset_last)
        else:
            total = op.add(now, op.matmul(state, turned))
            total = bb.emit(total if second is None else op.add(total, second))
            if kind == "rnn":
                state = bb.emit(op.tanh(total))
            else:
                i, o, f, c = _split(bb, total, 4, 1)
                memory = bb.emit(op.add(op.multiply(op.sigmoid(f), memory), op.multiply(op.sigmoid(i), op.tanh(c))))
                state = bb.emit(op.multiply(op.sigmoid(o), op.tanh(memory)))
        outputs[time] = state
    stacked = bb.emit(op.stack([outputs[time] for time in sorted(outputs)], axis=0))
    return [stacked, state, memory] if kind == "lstm" else [stacked, state]


def _gru(bb: Any, now: Any, state: Any, turned: Any, bias: Any, reset_last: bool) -> Any:
    op = relax.op
    biases, weights, parts = _split(bb, bias, 3, 0), _split(bb, turned, 3, 1), _split(bb, now, 3, 1)

    def product(item: Any, index: int) -> Any:
        result = op.matmul(item, weights[index])
        return result if bias is None else op.add(result, biases[index])
    update, reset = (bb.emit(op.sigmoid(op.add(parts[i], product(state, i)))) for i in (0, 1))
    rest = op.multiply(reset, product(state, 2)) if reset_last else product(op.multiply(reset, state), 2)
    new = bb.emit(op.tanh(op.add(parts[2], rest)))
    return bb.emit(op.add(new, op.multiply(update, op.subtract(state, new))))
