"""What TVM calls its parts: one name for versions 0.25 to 0.27. Imports tvm.

| here | 0.27 | before |
|---|---|---|
| `type_of(expr)` | `expr.ty` | `expr.struct_info` |
| `tensor_type(shape, dtype)` | `relax.TensorType` | `relax.TensorStructInfo` |
| `name_of(var)` | `var.name` | `var.name_hint` |
| `array_of(constant)` | `constant.value` | `constant.data` |
| `tirx` | `tvm.tirx` | `tvm.tir` |
"""
from __future__ import annotations

import importlib
from typing import Any

tvm: Any = importlib.import_module("tvm")
relax: Any = importlib.import_module("tvm.relax")
topi: Any = importlib.import_module("tvm.topi")
tirx: Any = importlib.import_module("tvm.tirx" if hasattr(tvm, "tirx") else "tvm.tir")


def kind_of(item: Any) -> str:
    """The name of an object's class in TVM 0.27."""
    name = type(item).__name__
    return {"Constant": "GenericConst", "DataflowVar": "Var"}.get(name, name).replace("StructInfo", "Type")


def type_of(expr: Any) -> Any:
    return expr.ty if hasattr(expr, "ty") else expr.struct_info


def tensor_type(shape: Any, dtype: str) -> Any:
    return (relax.TensorStructInfo if hasattr(relax, "TensorStructInfo") else relax.TensorType)(shape, dtype)


def name_of(var: Any) -> str:
    return str(var.name_hint if hasattr(var, "name_hint") else var.name)


def array_of(constant: Any) -> Any:
    return (constant.value if hasattr(constant, "value") else constant.data).numpy()


def device_array(array: Any) -> Any:
    """An array of numpy as TVM's own, on the CPU."""
    return tvm.runtime.tensor(array) if hasattr(tvm.runtime, "tensor") else tvm.nd.array(array)


def plain(item: Any) -> Any:
    """Numbers, texts and lists of TVM as Python's; lengths with symbols and other objects as they are."""
    kind = kind_of(item)
    if item is None or isinstance(item, (bool, int, float)):
        return item
    if kind in ("PrimValue", "DataTypeImm"):
        return plain(item.value)
    if kind in ("IntImm", "FloatImm", "StringImm"):
        value = item.value
        return float(value) if kind == "FloatImm" else str(value) if kind == "StringImm" else (
            bool(value) if str(getattr(item, "dtype", "")) == "bool" else int(value))
    if kind in ("Array", "list", "tuple"):
        return [plain(part) for part in item]
    return str(item) if kind in ("String", "str", "DataType", "dtype") else item


def is_same(first: Any, second: Any) -> bool:
    """True if two functions have the same structure, whatever their variables are called."""
    try:
        tvm.ir.assert_structural_equal(first, second, map_free_vars=True)
    except ValueError:
        return False
    return True
