"""Where the runs of a study are trained and scored: the table of executors, and how to add one.

An executor is one function

    run(tasks, datasets, *, report=None, **options) -> Iterator[Outcome]

- `tasks`: a sequence of `Task`, in the order in which they had best begin. A task's run folder is to be at
  `task.target` when its outcome is given, whole or not at all; `task.working` is for the way there. Their common
  folder exists by the time that the first outcome is asked for, and not always at the call.
- `datasets`: the images, by `task.dataset`. Tasks share them; send each to a process once.
- `report(step)`: told of a `TaskProgress` about twice a second, from the thread that asks for outcomes.
- `options`: what the executor alone understands (`processes` of "local", `address` of "ray").

The call itself looks whether the tasks can be done: it writes nothing, and raises ValueError or OSError for an option
it cannot use, a device that is not there, an address that nobody answers, a run that no device can hold. The work
begins with the first `next`. One `Outcome` comes per task, in any order, as soon as it is known.

`unbraid.studies.executors.work.perform` does the work of a task wherever it runs and turns what goes wrong in it into
an outcome "failed" with the reason; an executor does the same for a process or node that dies again and again, and
goes on with the others. It raises only what stops them all: a full disk (`DiskFull`), KeyboardInterrupt. Closed before
its end (`generator.close()`), it lets runs save their checkpoints and leaves no process behind. How tasks are packed
onto processes and devices is its own affair: on a CPU it changes no bit, stacked on a device little but rounding.

tests/contracts/test_executors.py holds every row to this.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from unbraid.base.plugins import Table
from unbraid.studies.executors import local, ray
from unbraid.studies.executors.work import EndState, Outcome, Task, TaskProgress

__all__ = ["EXECUTORS", "Outcome", "EndState", "TaskProgress", "Task"]

Executor: TypeAlias = Callable[..., Iterator[Outcome]]

EXECUTORS: Table[Executor] = Table({"local": local.run, "ray": ray.run}, "unbraid.executors", callable, "executor")
