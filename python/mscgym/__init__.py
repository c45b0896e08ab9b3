"""mscgym in Python: agents and environments as programs, records, the gym view. A wheel has the program, too.

The core needs only Python. `mscgym.gym` needs gymnasium, `mscgym.sampler` needs optuna; `to_numpy`
and `to_pandas` of a record need numpy and pandas; `wrap`, `finish` and `export_onnx` need torch, which is imported when they
are used. docs/python.md is the guide.
"""
from typing import TYPE_CHECKING, Any

from mscgym.agent import Agent, Proposal
from mscgym.environment import Environment, Failed
from mscgym.installed import get_include, program
from mscgym.record import Record, RecordError, Trial
from mscgym.space import Bound, Cost, Factor, Goal, Metric, Outcome, Space, Task, Term

if TYPE_CHECKING:
    from mscgym.torch.finish import finish
    from mscgym.torch.onnx_export import export_onnx
    from mscgym.torch.wrapper import MSCWrapper
    from mscgym.torch.wrapping import wrap

__all__ = ["Agent", "Bound", "Cost", "Environment", "Factor", "Failed", "Goal", "Metric", "Outcome", "Proposal",
           "Record", "RecordError", "Space", "Task", "Term", "Trial", "MSCWrapper", "export_onnx", "finish",
           "get_include", "program", "wrap"]

_OF_TORCH = {"MSCWrapper": "wrapper", "export_onnx": "onnx_export", "finish": "finish", "wrap": "wrapping"}


def __getattr__(name: str) -> Any:
    """Imports what needs torch when it is first used."""
    if name not in _OF_TORCH:
        raise AttributeError(f"module 'mscgym' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"mscgym.torch.{_OF_TORCH[name]}"), name)
