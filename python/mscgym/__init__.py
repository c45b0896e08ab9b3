"""mscgym in Python: agents and environments as programs, records, the gym view. A wheel has the program, too.

The core needs only Python. `mscgym.gym` needs gymnasium, `mscgym.sampler` needs optuna; `to_numpy`
and `to_pandas` of a record need numpy and pandas. docs/python.md is the guide.
"""
from mscgym.agent import Agent, Proposal
from mscgym.environment import Environment, Failed
from mscgym.installed import get_include, program
from mscgym.record import Record, RecordError, Trial
from mscgym.space import Bound, Cost, Factor, Goal, Metric, Outcome, Space, Task, Term

__all__ = ["Agent", "Bound", "Cost", "Environment", "Factor", "Failed", "Goal", "Metric", "Outcome", "Proposal",
           "Record", "RecordError", "Space", "Task", "Term", "Trial", "get_include", "program"]
