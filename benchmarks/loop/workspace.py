"""The folder of one loop: its database, its trainer's environment, its commands, and which stages are done."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MERGEMILL = (sys.executable, "-c", "from mergemill.cli import main; main()")
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
THREADS = "2"
"""Of torch."""


@dataclass(frozen=True, kw_only=True)
class StageReport:
    """Results of a stage that is done, and how long it took."""

    seconds: float
    load: float
    """Processes that wanted a processor at its end, averaged over a minute: above their number it took longer."""
    facts: dict[str, Any]


class Workspace:
    """Commands in the folder of a loop. Their messages go to `log.txt`."""

    def __init__(self, out: Path) -> None:
        self.out = out.resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "stages").mkdir(exist_ok=True)

    @property
    def python(self) -> Path:
        """Interpreter of the trainer's environment."""
        return self.out / "venv" / "bin" / "python"

    def get_model(self, name: str) -> Path:
        """Return the folder of a model."""
        return self.out / "models" / name

    def clear(self, path: Path) -> Path:
        """Remove what an interrupted stage left at a path; return the path."""
        shutil.rmtree(path, ignore_errors=True)
        return path

    def run_stage(self, name: str, stage: Callable[[], dict[str, Any]]) -> StageReport:
        """Run a stage unless it is done; return its report, that of then where it is."""
        path = self.out / "stages" / f"{name}.json"
        if not path.exists():
            print(f"{name} ...", file=sys.stderr, flush=True)
            began = time.perf_counter()
            facts = stage()
            seconds, load = time.perf_counter() - began, os.getloadavg()[0]
            report = {"seconds": round(seconds, 1), "load": round(load, 1), "facts": facts}
            path.write_text(json.dumps(report, indent=1))
        report = json.loads(path.read_text())
        print(f"{name}: {report['seconds']} s, {report['facts']}", file=sys.stderr, flush=True)
        return StageReport(**report)

    def make_mergemill_command(self, *words: str) -> list[str]:
        """Return a command of mergemill on the loop's database."""
        return [*MERGEMILL, *words, "--db", str(self.out / "mergemill.db")]

    def run_mergemill(self, *words: str) -> list[dict[str, Any]]:
        """Run a command of mergemill; return the JSON lines that it prints.

        Raises:
            SystemExit: it failed.
        """
        output = self._run([*self.make_mergemill_command(*words), "--json"])
        return [json.loads(line) for line in output.splitlines() if line.startswith("{")]

    def run_trainer(self, module: str, *words: str) -> None:
        """Run a module of the trainer in its environment.

        Raises:
            SystemExit: it failed.
        """
        self._run(
            [str(self.python), "-m", f"benchmarks.loop.trainer.{module}", *words], self.make_trainer_environment()
        )

    def make_trainer_environment(self) -> dict[str, str]:
        """Return environment variables of the trainer: nothing is fetched, and this repository can be imported."""
        return {
            **os.environ,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'client'}",
            "OMP_NUM_THREADS": THREADS,
            "HF_HUB_OFFLINE": "1",
            "TRL_EXPERIMENTAL_SILENCE": "1",
        }

    def install_trainer(self) -> None:
        """Make the trainer's environment."""
        self._run(["uv", "venv", "--quiet", "--clear", str(self.out / "venv")])
        self._run(["uv", "pip", "install", "--quiet", "--python", str(self.python), "-r", str(REQUIREMENTS)])

    @contextlib.contextmanager
    def serve_model(self, name: str) -> Iterator[str]:
        """Serve a model of the folder; yield the URL."""
        command = [str(self.python), "-m", "benchmarks.loop.trainer.server", "--model", str(self.get_model(name))]
        with self._open_log() as log:
            server = subprocess.Popen(
                command,
                env=self.make_trainer_environment(),
                cwd=self.out,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        with server:
            try:
                yield str(server.stdout.readline() if server.stdout else "").strip()
            finally:
                server.terminate()

    def _run(self, command: list[str], environment: dict[str, str] | None = None) -> str:
        with self._open_log() as log:
            done = subprocess.run(
                command, env=environment, cwd=self.out, stdout=subprocess.PIPE, stderr=log, text=True, check=False
            )
            log.write(done.stdout)
        if done.returncode:
            raise SystemExit(f"exit code {done.returncode} of {' '.join(command)}; see {self.out / 'log.txt'}")
        return done.stdout

    def _open_log(self) -> Any:
        return (self.out / "log.txt").open("a")
