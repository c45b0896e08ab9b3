"""mscgym in Python: the commands as functions, agents and environments, records, the gym view.

The core needs only Python. The functions (`quantize`, `search`, ...) need numpy; `mscgym.gym` needs gymnasium,
`mscgym.sampler` needs optuna; `to_numpy` and `to_pandas` of a record need numpy and pandas. `wrap`,
`finish` and `export_onnx` need torch, which is imported when one of them is used. A wheel has the program, too.
docs/python.md is the guide.
"""
from typing import TYPE_CHECKING, Any

from mscgym.agent import Agent, Proposal
from mscgym.environment import Environment, Failed
from mscgym.errors import Error, Stopped
from mscgym.functions import bench, quantize, report, run
from mscgym.installed import get_include, program
from mscgym.models import Model
from mscgym.pieces import Pieces
from mscgym.record import Record, RecordError, Trial
from mscgym.results import Bench, Quantized, Report, Result, Searched
from mscgym.searches import prune, search
from mscgym.space import Bound, Cost, Factor, Goal, Metric, Outcome, Space, Task, Term

if TYPE_CHECKING:
    from mscgym.client import Client as Client, ServiceError as ServiceError
    from mscgym.torch.finish import finish as finish
    from mscgym.torch.onnx_export import export_onnx as export_onnx
    from mscgym.torch.wrapper import MSCWrapper as MSCWrapper
    from mscgym.torch.wrapping import wrap as wrap

__all__ = ["Agent", "Bench", "Bound", "Client", "Cost", "Environment", "Error", "Factor", "Failed", "Goal", "Metric", "Model",
           "Outcome", "Pieces", "Proposal", "Quantized", "Record", "RecordError", "Report", "Result", "Searched",
           "ServiceError",
           "Space", "Stopped", "Task", "Term", "Trial", "bench", "get_include", "program", "prune", "quantize",
           "report", "run", "search"]

# Modules that need torch, and one that is also a program: `python3 -m` warns if the package has imported it before.
_LATER = {"Client": "client", "MSCWrapper": "torch.wrapper", "ServiceError": "client",
          "export_onnx": "torch.onnx_export", "finish": "torch.finish", "wrap": "torch.wrapping"}


def __getattr__(name: str) -> Any:
    """Imports what is in _LATER when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module 'mscgym' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"mscgym.{_LATER[name]}"), name)
