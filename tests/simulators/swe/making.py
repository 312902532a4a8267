"""Episodes of the `swe` pack on small repositories, with a scripted simulator over HTTP."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from backends.git import GitRepository
from backends.llm.client import ChatModel
from backends.llm.ledger import CallLedger
from backends.sandbox.base import Sandbox
from backends.sandbox.bubblewrap import IMAGE, create_sandbox
from backends.sandbox.execution import ResourceLimits
from builders.source_tree import write_history_tar
from core.config import Settings
from evaluation.solution_lines import make_solution_lines
from simulators.swe.episode import SweEpisode
from simulators.swe.execution import ExecutionSimulator, SweTask
from simulators.swe.workspace import WORKDIR, WorkspaceHost
from tests.helpers import TinyRepo
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn

LIMITS = ResourceLimits(seconds=600, memory_mb=2048, disk_mb=1024, pids=256, cpus=1, output_bytes=2 * 1024 * 1024)
BASE: Mapping[str, str | bytes] = {
    "calc/__init__.py": "",
    "calc/add.py": 'def add(left, right):\n    """Add two numbers."""\n    return left - right\n',
    "calc/text.py": "def join(words):\n    return ', '.join(words)\n",
    "tests/test_add.py": "from calc.add import add\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n",
    "docs/a page.md": "# A page\n\nThis page is about adding.\n",
    "data/table.bin": bytes(range(256)) * 20,
    "data/latin.txt": "caf\xe9\n".encode("latin-1"),
    "setup.cfg": "[tool:pytest]\naddopts = -q\n",
}
GOLD: Mapping[str, str | bytes] = {
    "calc/add.py": 'def add(left, right):\n    """Add two numbers."""\n    return sum((left, right), start=0)\n',
    "tests/test_add.py": "from calc.add import add\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n\n\n"
    "def test_positive_numbers():\n    assert add(2000, 345) == 2345\n",
}
GOLD_LINE = "    return sum((left, right), start=0)"
TEST_LINE = "    assert add(2000, 345) == 2345"
HIDDEN_NAME = "test_positive_numbers"


class Calc:
    """The repository `calc`, whose gold patch repairs `add`."""

    def __init__(self, folder: Path, more: Mapping[str, str | bytes] | None = None) -> None:
        self.repo = TinyRepo(folder)
        files = {**BASE, **(more or {})}
        self.repo.write(files)
        (folder / "calc" / "link.py").symlink_to("add.py")
        (folder / "run.sh").write_text("#!/bin/sh\necho run\n")
        (folder / "run.sh").chmod(0o755)
        self.base = self.repo.commit("Begin", {})
        self.gold = self.repo.commit("Repair add", GOLD)
        self.gold_patch = self.repo.git("diff", self.base, self.gold, "--", "calc") + "\n"
        self.test_patch = self.repo.git("diff", self.base, self.gold, "--", "tests") + "\n"
        self.base_files = [content if isinstance(content, bytes) else content.encode() for content in files.values()]

    def make_task(self, name: str = "ada__calc-1.simulated") -> SweTask:
        patches = (self.gold_patch.encode(), self.test_patch.encode())
        return SweTask(
            id=f"id-of-{name}",
            name=name,
            repo="ada/calc",
            language="python",
            solution_lines=make_solution_lines(patches, self.base_files, [HIDDEN_NAME]),
            gold_patch=self.gold_patch,
            test_patch=self.test_patch,
            gold_files=("calc/add.py",),
        )

    def checkout(self, folder: Path) -> Path:
        """Return a clone at the base commit."""
        self.repo.git("clone", "-q", str(self.repo.path), str(folder))
        self.repo.git("-C", str(folder), "checkout", "-q", "-B", "main", self.base)
        return folder

    @contextlib.contextmanager
    def open_tree(self) -> Iterator[IO[bytes]]:
        """Open a tar of the base commit."""
        with tempfile.TemporaryFile() as spool:
            write_history_tar(GitRepository(self.repo.path / ".git"), self.base, spool, at=WORKDIR)
            spool.seek(0)
            yield spool


def print_text(stdout: str, *, code: int = 0, stderr: str = "", files: Mapping[str, str | None] | None = None) -> Turn:
    """Return the simulator's answer."""
    written = [{"path": path, "content": content} for path, content in (files or {}).items()]
    return Turn(text=json.dumps({"stdout": stdout, "stderr": stderr, "exit_code": code, "files": written}))


def read_prompt(request: ModelRequest) -> str:
    return "\n".join(str(message["content"]) for message in request.body["messages"])


@contextlib.contextmanager
def open_simulator(folder: Path, model: ScriptedModel, **settings: object) -> Iterator[ExecutionSimulator]:
    """Open a simulator whose ledger is in a folder."""
    chosen = Settings(llm=model.url, model="scripted", **settings)  # type: ignore[arg-type]
    with (
        CallLedger(folder) as ledger,
        contextlib.closing(ChatModel(chosen.llm, chosen.host, first_pause=0.01)) as client,
    ):
        yield ExecutionSimulator(client, ledger, answer_tokens=chosen.llm.answer_tokens)


def make_host(sandbox: Sandbox | None = None, image: str = IMAGE) -> WorkspaceHost:
    """Return the host of episodes: the sandbox of namespaces, or another one."""
    made = sandbox or create_sandbox(Settings().sandbox, lambda _: None)
    return WorkspaceHost(sandbox=made, image=image, limits=LIMITS, of_host=sandbox is None)


@contextlib.contextmanager
def open_episode(
    calc: Calc, simulator: ExecutionSimulator, host: WorkspaceHost | None = None, task: SweTask | None = None
) -> Iterator[SweEpisode]:
    """Open an episode on the base commit."""
    with SweEpisode(
        task or calc.make_task(), "Repair `add`.", host or make_host(), calc.open_tree, simulator
    ) as episode:
        episode.reset()
        yield episode
