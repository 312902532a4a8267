"""The tools that our bundles are for, from PyPI, on our bundles: SWE-bench 5.0.2 and Harbor 0.24.

Each lives in an environment of its own in the user's cache, made once. Where PyPI cannot be reached the tests fail and
say so; Harbor needs Python 3.12 or later, and where this machine has none its test is skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uv

import exporters
from builders import interpreters
from exporters.swebench import LOG_PARSER, spelling
from tests.boxes import make_services
from tests.exporters.tasks import make_certificate, make_task_with_image

pytestmark = [pytest.mark.slow, pytest.mark.docker]

NASTY = ("a.py::t[x  y]", "a.py::t[ x - y ]", "a.py::t[\t]", "a.py::t[31m]", "a.py::T::t[\u2028ä]", "a.py::t[a] ")


def installed(requirement: str, python: str) -> Path:
    """The `bin` folder of an environment that holds the requirement."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mergemill-tests"
    cache.mkdir(parents=True, exist_ok=True)
    venv = cache / requirement.replace("==", "-")
    with (cache / f"{venv.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / "whole").is_file():
            for command in (
                ["venv", "--clear", "--python", python, venv],
                ["pip", "install", "--python", venv, requirement],
            ):
                done = subprocess.run([uv.find_uv_bin(), *command], capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    pytest.fail(f"{requirement} cannot be installed from PyPI: {done.stderr.strip()[-500:]}")
            (venv / "whole").touch()
    return venv / "bin"


def newer_python() -> str:
    """A Python of 3.12 or later on this machine; the test is skipped where there is none."""
    if sys.version_info >= (3, 12):
        return sys.executable
    known = {version: one.python for version, one in interpreters.found().items()}
    for version in ("3.12", "3.13"):
        if found := known.get(version) or shutil.which(f"python{version}"):
            return found
    pytest.skip("Harbor needs Python 3.12 or later, and this machine has none (`uv python install 3.12`)")


@pytest.fixture
def swebench() -> Path:
    return installed("swebench==5.0.2", sys.executable)


@pytest.fixture
def harbor() -> Path:
    return installed("harbor==0.24.0", newer_python())


def _bundle(format_name: str, tmp_path: Path) -> Path:
    services = make_services(tmp_path)
    task = make_task_with_image(services, tmp_path)
    exporters.export(format_name, [task], {task.id: make_certificate(task)}, tmp_path / format_name, services)
    return tmp_path / format_name


def _swebench(command: Path, folder: Path, *words: str | Path) -> dict[str, Any]:
    """The report of an evaluation."""
    arguments = [command / "swebench", "eval", folder / "tasks.jsonl", *words, "--run-id", "it", "-j", "1"]
    done = subprocess.run(arguments, cwd=folder.parent, capture_output=True, text=True, check=False)
    [report] = folder.parent.glob("*.it.json") or [None]
    assert report is not None, done.stdout + done.stderr
    content: dict[str, Any] = json.loads(report.read_text())
    report.unlink()
    return content


def test_swebench_resolves_gold_patches_and_no_others(swebench: Path, tmp_path: Path) -> None:
    folder = _bundle("swebench", tmp_path)
    name = "ada__words-1.bugfix"
    assert _swebench(swebench, folder, "--gold")["resolved_ids"] == [name]
    noop = _swebench(swebench, folder, "-p", folder / "predictions.noop.jsonl")
    assert (noop["resolved_ids"], noop["unresolved_ids"], noop["error_ids"]) == ([], [name], [])
    _write_prediction(tmp_path / "empty.jsonl", name, "")
    empty = _swebench(swebench, folder, "-p", tmp_path / "empty.jsonl")
    assert (empty["resolved_ids"], empty["empty_patch_ids"]) == ([], [name])


def test_swebench_is_not_fooled_by_a_patch_that_holds_only_a_hook(swebench: Path, tmp_path: Path) -> None:
    folder = _bundle("swebench", tmp_path)
    hook = (
        "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    outcome = yield\n    outcome.get_result().outcome = 'passed'\n"
    )
    added = "".join(f"+{line}\n" for line in hook.splitlines())
    patch = (
        "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n"
        f"@@ -0,0 +1,{added.count(chr(10))} @@\n{added}"
    )
    _write_prediction(tmp_path / "hook.jsonl", "ada__words-1.bugfix", patch)
    report = _swebench(swebench, folder, "-p", tmp_path / "hook.jsonl")
    assert (report["resolved_ids"], report["unresolved_ids"]) == ([], ["ada__words-1.bugfix"])


def test_swebenchs_log_parser_reads_our_spelling_of_any_id(swebench: Path, tmp_path: Path) -> None:
    lines = "".join(f"PASSED {spelling(test)}\nFAILED {spelling('f' + test)}\n" for test in NASTY)
    (tmp_path / "log").write_text(lines)
    program = (
        "import json, sys; from swebench.harness.log_parsers import PARSER_REGISTRY as parsers;"
        f"print(json.dumps(parsers[{LOG_PARSER!r}](open(sys.argv[1]).read(), None)))"
    )
    done = subprocess.run(
        [swebench / "python", "-c", program, tmp_path / "log"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    passed = {spelling(test): "PASSED" for test in NASTY}
    assert json.loads(done.stdout) == passed | {spelling("f" + test): "FAILED" for test in NASTY}


def _write_prediction(path: Path, name: str, patch: str) -> None:
    path.write_text(json.dumps({"instance_id": name, "model_name_or_path": path.stem, "model_patch": patch}) + "\n")


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_harbor_rewards_the_oracle_and_not_the_idle(agent: str, reward: int, harbor: Path, tmp_path: Path) -> None:
    folder = _bundle("harbor", tmp_path)
    done = subprocess.run(
        [
            harbor / "harbor", "run", "-p", folder, "-a", agent, "-e", "harbor_engine:PlainEngine",
            "-o", tmp_path / "jobs", "--job-name", agent, "-y",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(folder), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )  # fmt: skip
    written = list((tmp_path / "jobs").rglob("reward.json"))
    assert len(written) == 1, done.stdout + done.stderr
    told = json.loads(written[0].read_text())
    assert (told["reward"], told["tampering"], told["patch_applied"]) == (reward, 0, 1)
