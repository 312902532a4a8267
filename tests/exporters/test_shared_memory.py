"""Size of /dev/shm in containers of shipped programs, by a `docker` that only writes its arguments down."""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from mergemill_client.adapters.containers import TaskContainer

from exporters.shipped import mergemill_reward

STARTED = "#!/bin/sh\nprintf '%s\\n' \"$@\" >> {log}\necho 1234\n"


class Stubs(ModuleType):
    """A module in which every name stands for something that can be called, decorated with, or derived from."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        generic = {"__class_getitem__": classmethod(lambda cls, _: cls)}
        return type(name, (), generic) if name[0].isupper() else lambda *_, **__: lambda value: value


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File with the arguments of all calls of `docker`, one a line."""
    program, log = tmp_path / "bin" / "docker", tmp_path / "arguments"
    program.parent.mkdir()
    program.write_text(STARTED.format(log=log))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return log


def read_limits(log: Path) -> tuple[str, str]:
    """Return the limit of the memory and the size of /dev/shm."""
    words = log.read_text().splitlines()
    return words[words.index("--memory") + 1], words[words.index("--shm-size") + 1]


def test_the_container_of_a_verifier_has_half_of_its_memory_in_shm(arguments: Path) -> None:
    with mergemill_reward._Container({"cpus": 1, "memory_mb": 3000, "image": "an-image"}, "docker"):
        assert read_limits(arguments) == ("3000m", "1500m")


def test_the_container_of_a_trainers_agent_has_half_of_its_memory_in_shm(arguments: Path) -> None:
    TaskContainer("an-image", "/testbed", memory_mb=2048).close()
    assert read_limits(arguments) == ("2048m", "1024m")


def test_the_plain_engine_of_harbor_gives_half_of_the_memory_to_shm(
    arguments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("base", "capabilities", "definition"):
        monkeypatch.setitem(sys.modules, f"harbor.environments.{name}", Stubs(name))
    monkeypatch.setitem(sys.modules, "harbor.environments.base", base := Stubs("base"))
    base.ExecResult = SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.delitem(sys.modules, "exporters.harbor_engine", raising=False)
    engine_class = importlib.import_module("exporters.harbor_engine").PlainEngine
    monkeypatch.delitem(sys.modules, "exporters.harbor_engine")

    async def answer(*_: object, **__: object) -> str:
        return "an-image"

    known = {"session_id": "s", "_effective_cpus": 1, "_effective_memory_mb": 4096, "_network_disabled": True}
    hooks = {"_image": answer, "ensure_dirs": answer, "_upload_environment_dir_after_start": answer}
    fields = {**known, **hooks, "_mount_targets": lambda *_, **__: []}
    asyncio.run(type("Engine", (engine_class,), fields)().start(force_build=False))
    assert read_limits(arguments) == ("4096m", "2048m")


def test_the_engine_sandbox_of_inspect_gives_half_of_the_memory_to_shm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("", ".agent", ".dataset", ".scorer", ".solver", ".tool", ".util", ".util._sandbox.compose"):
        monkeypatch.setitem(sys.modules, f"inspect_ai{name}", Stubs(name))
    monkeypatch.setitem(sys.modules, "mergemill_inspect.mergemill_reward", Stubs("mergemill_reward"))
    for name in ("scorer", "solver"):
        decorate = lambda function=None, **_: function or (lambda decorated: decorated)  # noqa: E731
        monkeypatch.setattr(sys.modules[f"inspect_ai.{name}"], name, decorate, raising=False)
    monkeypatch.setattr(sys.modules["inspect_ai"], "task", lambda function: function, raising=False)
    monkeypatch.delitem(sys.modules, "exporters.shipped.inspect_tasks", raising=False)
    tasks = importlib.import_module("exporters.shipped.inspect_tasks")
    monkeypatch.delitem(sys.modules, "exporters.shipped.inspect_tasks")
    calls: list[list[str]] = []

    async def record(words: list[str], **_: object) -> MagicMock:
        calls.append(words)
        return MagicMock(success=True, stdout="1234")

    monkeypatch.setattr(tasks, "subprocess", record)
    metadata = {"cpus": 1, "memory_mb": 4096, "image": "an-image", "workdir": "/testbed"}
    asyncio.run(tasks.EngineSandbox.sample_init("", None, metadata))
    [words] = calls
    assert words[words.index("--shm-size") + 1] == "2048m"
