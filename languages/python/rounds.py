"""The plug-in of pytest that runs each test many times."""

from __future__ import annotations

from languages.repetition import RoundsPlugin
from taskdb.records import BuildPlan

_MODULE = "mergemill_workload"


def _enable_plugin(plan: BuildPlan, folder: str) -> BuildPlan:
    python_path = [value for name, value in plan.env if name == "PYTHONPATH"]
    env = [pair for pair in plan.env if pair[0] != "PYTHONPATH"]
    return plan.model_copy(
        update={
            "test": plan.test.model_copy(update={"argv": (*plan.test.argv, "-p", _MODULE)}),
            "env": (*env, ("PYTHONPATH", ":".join([f"{plan.workdir}/{folder}", *python_path]))),
        }
    )


PLUGIN = RoundsPlugin(module=_MODULE, enable=_enable_plugin)
