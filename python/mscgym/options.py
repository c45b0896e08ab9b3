"""Options of the program as keyword arguments.

    arguments({"loss_tensors": ["a", "b"], "threads": 2, "restart": True})
    # ["--loss-tensors=[\"a\", \"b\"]", "--threads=2", "--restart"]
"""
from __future__ import annotations

import difflib
import inspect
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

AnyPath = str | os.PathLike[str]
AnyNumber = float | str


class ModelOptions(TypedDict, total=False):
    """How the program computes; as the command line's options of these names.

    Attributes:
        device: "auto", "cpu", "vulkan", "vulkan:N", "vulkan:uuid=UUID" or "vulkan:pci=ADDRESS".
        isa: Highest level of processor instructions, such as "avx2".
        threads: Number of threads; default: one per processor.
        memory: Most memory to use: bytes, or a text such as "4G".
        bind: Values of symbolic dimensions, or of inputs that decide shapes: {"H": 224}.
        operators: Plug-ins for operators that mscgym lacks: a path or several (docs/operators.md).
    """
    device: str
    isa: str
    threads: int
    memory: int | str
    bind: Mapping[str, int]
    operators: AnyPath | Sequence[AnyPath]


class SearchOptions(ModelOptions, total=False):
    """Further options of a search; as the command line's options of these names.

    Attributes:
        accuracy_drop: Largest drop of the accuracy, for all searches of a configuration.
        restart: Start over, and keep the old record under another name.
        baseline: "uniform", or "greedy" to compare with a greedy search, too.
        warm_from: Records or strategy files from whose points the search starts.
        record: Name of the record in the workspace, or path of another one.
        entry: With config: run only this search, such as "quantize[1]".
        dry_run: Only estimate what the search will cost: Searched.estimate.
        retry_failed, warm_start, accept_new_numerics: How to continue; see `mscgym search --help`.
        log: "tensorboard:DIR" writes event files.
        cluster, numerics, node_path, copy_to, worker_program: Workers; see docs/cluster.md.
        serve, port: Serve a page that follows the search.
        imatrix: Importance file of llama.cpp, for the searches of `quantize` (docs/gguf.md).
        on_improve, on_end: Programs to run at an improvement and at the end: a path, or a list of words.
    """
    accuracy_drop: float
    restart: bool
    baseline: str
    warm_from: AnyPath | Sequence[AnyPath]
    record: AnyPath
    entry: str
    dry_run: bool
    retry_failed: bool
    warm_start: bool
    accept_new_numerics: bool
    log: str
    cluster: str
    numerics: str
    node_path: AnyPath
    copy_to: AnyPath
    worker_program: AnyPath
    serve: bool
    port: int
    imatrix: AnyPath
    on_improve: AnyPath | Sequence[str]
    on_end: AnyPath | Sequence[str]


def keywords(function: Callable[..., Any], options: type[Any]) -> list[str]:
    """All keyword arguments of a function with these further options."""
    return [*inspect.signature(function).parameters, *options.__annotations__]


def check_names(function: str, options: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raises TypeError for an unknown option, with the nearest known one."""
    names = list(known)
    for name in options:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            raise TypeError(f"{function}() got an unexpected keyword argument '{name}'"
                            + (f", did you mean '{near[0]}'?" if near else ""))


def _text(value: Any) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return json.dumps(value) if isinstance(value, (list, tuple, dict)) else str(value)


def arguments(options: Mapping[str, Any]) -> list[str]:
    """Arguments for options that are not None. Mappings and the lists of repeated options are given as the program
    expects them.
    """
    words: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(flag)
        elif name == "bind":
            words += [f"{flag}={symbol}={number}" for symbol, number in value.items()]
        elif name in ("warm_from", "tensor", "state", "operators"):
            values = [value] if isinstance(value, (str, os.PathLike)) else value
            words += [f"{flag}={_text(one)}" for one in values]
        else:
            words.append(f"{flag}={_text(value)}")
    return words
