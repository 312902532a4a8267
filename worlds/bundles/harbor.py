"""Harbor tasks (0.24, 0.25; task schema 1.4): the world and an MCP server in the agent's container.

The verifier has a separate container without network. It gets nothing but the log of the agent's calls, plays them
against the world again, and runs the checks on the final state: a log that earns 1 is a solution, whoever wrote it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

import guest
from dockerfiles.render import pin_image
from guest.world import CONTAINER_FOLDER
from guest.world_tool import PROGRAM_FOLDER
from guest.world_tool.world_tool import WORLD_FILE
from worlds.bundles.contents import ENVIRONMENT, BundledScenario, BundledWorld
from worlds.definitions import Call

ORGANIZATION = "mergemill"
"""First part of the names of tasks."""
IMAGE = "python:3.11-slim-bookworm"
PROGRAMS = "/opt/mergemill-world"
STATE = "/var/lib/mergemill-world"
WORLD_MODULES = ("__init__", "canonical", "frames", "frozen", "reasons", "schema_check", "world_process")
CHECK_MODULES = ("check_process", "confinement")
LOG = "/logs/artifacts/calls.jsonl"
AGENT_SECONDS = 1800
VERIFIER_SECONDS = 120
DOCKERFILE = """\
# World {world}, scenario {scenario}. The build argument BASE replaces the image: any with Python 3.11 or newer.
ARG BASE={image}
FROM ${{BASE}}
USER root
RUN id mergemill > /dev/null 2>&1 || useradd --create-home --uid 1000 mergemill
COPY programs {programs}
COPY world /usr/local/bin/world
RUN install -d -o mergemill -g mergemill {state} && chmod 755 /usr/local/bin/world
WORKDIR /home/mergemill
"""
RUN_PROGRAM = (
    "exec env TZ=UTC PYTHONHASHSEED=0 python3 -S -s -B -c"
    " \"import sys; sys.path[0] = '{folder}'; from guest.world_tool.{call}\""
)
INSTRUCTION = """\
{task}

You work on the environment that is described below, through its tools alone. The MCP server `world` offers them; where
that is not at hand, the command `world` does the same:

```
world tools                  # the tools with their parameters, as JSON
world call TOOL ARGUMENTS    # call a tool; ARGUMENTS is a JSON object
```

Every call counts and cannot be taken back. You are done when the task is.

{documentation}
"""


@dataclass(frozen=True)
class TaskFile:
    """File of a task."""

    content: bytes
    is_executable: bool = False


def build_task(world: BundledWorld, scenario: BundledScenario, calls: tuple[Call, ...]) -> dict[str, TaskFile]:
    """Return path in the task's folder -> file.

    Args:
        world: the world.
        scenario: a scenario of it.
        calls: calls that solve it, as they were sent.
    """
    content = build_world(world, scenario)
    hidden = {**content, "checks": build_checks(scenario), "verifier_seconds": VERIFIER_SECONDS // 2}
    dockerfile = DOCKERFILE.format(
        world=world.name,
        scenario=scenario.definition.name,
        image=pin_image(IMAGE),
        programs=PROGRAMS,
        state=STATE,
    )
    instruction = INSTRUCTION.format(task=scenario.definition.task, documentation=world.definition.documentation)
    return {
        "task.toml": TaskFile(tomli_w.dumps(build_config(world, scenario)).encode()),
        "instruction.md": TaskFile(instruction.encode()),
        "environment/Dockerfile": TaskFile(dockerfile.encode()),
        "environment/world": TaskFile(
            _render_script(f'{_run("world_tool import run; run", PROGRAMS, PROGRAMS, STATE)} "$@"'), True
        ),
        **{
            f"environment/programs/{path}": TaskFile(data)
            for path, data in collect_programs(for_verifier=False).items()
        },
        f"environment/programs/{WORLD_FILE}": TaskFile(_dump(content)),
        "solution/solve.sh": TaskFile(_render_script(*map(_render_call, calls)), True),
        **{f"tests/{path}": TaskFile(data) for path, data in collect_programs(for_verifier=True).items()},
        f"tests/{WORLD_FILE}": TaskFile(_dump(hidden)),
        "tests/test.sh": TaskFile(
            _render_script(_run("verify import main; main", "/tests", "/tests", LOG, "/logs/verifier")), True
        ),
    }


def build_config(world: BundledWorld, scenario: BundledScenario) -> dict[str, Any]:
    """Return the content of task.toml."""
    resources = {"cpus": 1, "memory_mb": 1024, "storage_mb": 2048, "build_timeout_sec": 600.0}
    log = f"{STATE}/calls.jsonl"
    collect = f"if [ -f {log} ]; then head -c 16777216 {log} > {LOG}; else : > {LOG}; fi"
    definition, contents = scenario.definition, world.contents
    return {
        "schema_version": "1.4",
        "task": {
            "name": f"{ORGANIZATION}/{definition.name}",
            "description": definition.task[:200],
            "keywords": ["world", "tool-use", world.name],
        },
        "metadata": {
            "environment": ENVIRONMENT,
            "world": world.name,
            "scenario": definition.name,
            "origin": contents.origin,
            "license": contents.license,
            "models": list(contents.models),
            "certified": contents.certification is not None,
            "n_tools": len(world.analysis.tools),
            "n_checks": len(definition.checks),
            "n_kept_checks": len(scenario.kept),
        },
        "agent": {"timeout_sec": float(AGENT_SECONDS), "user": "mergemill"},
        "verifier": {
            "timeout_sec": float(VERIFIER_SECONDS),
            "user": "root",
            "environment_mode": "separate",
            "environment": {**resources, "network_mode": "no-network"},
            "collect": [{"command": collect, "user": "root", "timeout_sec": 60.0}],
        },
        "environment": {
            **resources,
            "workdir": "/home/mergemill",
            "network_mode": "public",
            "mcp_servers": [
                {"name": "world", "transport": "stdio", "command": "/usr/local/bin/world", "args": ["mcp"]}
            ],
        },
    }


def build_world(world: BundledWorld, scenario: BundledScenario) -> dict[str, Any]:
    """Return the files that the program in the agent's container needs; neither checks nor solution are in it."""
    return {
        "program": world.definition.program,
        "class_name": world.analysis.class_name,
        "tools": [tool.to_json() for tool in world.analysis.tools],
        "state": scenario.definition.state,
        "seed": 0,
    }


def build_checks(scenario: BundledScenario) -> list[dict[str, str]]:
    """Return the checks as the verifier runs them."""
    return [{"function": check.function, "source": check.source} for check in scenario.definition.checks]


def collect_programs(*, for_verifier: bool) -> Mapping[str, bytes]:
    """Return path -> content of the modules that the agent's container needs, or the verifier's."""
    root = Path(guest.__file__).parent
    sources = [root / "__init__.py"]
    sources += [CONTAINER_FOLDER / f"{name}.py" for name in (*WORLD_MODULES, *(CHECK_MODULES if for_verifier else ()))]
    sources += [PROGRAM_FOLDER / name for name in ("__init__.py", "world_tool.py", *(["verify.py"] * for_verifier))]
    return {f"guest/{source.relative_to(root).as_posix()}": source.read_bytes() for source in sources}


def _run(call: str, folder: str, *arguments: str) -> str:
    """Return the shell command that calls a function of a module with the programs of a folder."""
    listed = ", ".join(f"'{argument}'" for argument in arguments)
    return RUN_PROGRAM.format(folder=folder, call=f"{call}({listed})")


def _render_call(call: Call) -> str:
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    return f"world call {shlex.quote(call.tool)} {shlex.quote(arguments)}"


def _render_script(*lines: str) -> bytes:
    return "\n".join(["#!/bin/sh", *lines, ""]).encode()


def _dump(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()
