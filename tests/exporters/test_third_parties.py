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

from builders import interpreters
from exporters.swebench import LOG_PARSER, spelling
from tests.cli import mergemill
from tests.sample import make_sample

pytestmark = [pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(1800)]

NASTY = ("a.py::t[x  y]", "a.py::t[ x - y ]", "a.py::t[\t]", "a.py::t[31m]", "a.py::T::t[\u2028ä]", "a.py::t[a] ")

HOOK = """\
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


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


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of each format, as the command line makes them of the sample's two bug fixes."""
    folder = tmp_path_factory.mktemp("bundles")
    make_sample(folder / "greet")
    ran = mergemill("run", "git:greet", cwd=folder)
    assert ran.code == 0, ran.err
    for format_name in ("swebench", "harbor"):
        exported = mergemill("export", "--format", format_name, "--out", format_name, cwd=folder)
        assert exported.code == 0, exported.err
    return folder


def _names(bundle: Path) -> list[str]:
    names = sorted(task["name"] for task in json.loads((bundle / "manifest.json").read_text())["tasks"])
    assert len(names) == 2
    return names


def _swebench(command: Path, bundle: Path, cwd: Path, *words: str | Path) -> dict[str, Any]:
    """The report of an evaluation."""
    arguments = [command / "swebench", "eval", bundle / "tasks.jsonl", *words, "--run-id", "it", "-j", "2"]
    done = subprocess.run(arguments, cwd=cwd, capture_output=True, text=True, check=False)
    reports = list(cwd.glob("*.it.json"))
    assert len(reports) == 1, done.stdout + done.stderr
    content: dict[str, Any] = json.loads(reports[0].read_text())
    reports[0].unlink()
    return {key: sorted(value) if isinstance(value, list) else value for key, value in content.items()}


def test_swebench_resolves_gold_patches_and_no_others(swebench: Path, bundles: Path, tmp_path: Path) -> None:
    bundle = bundles / "swebench"
    names = _names(bundle)
    assert _swebench(swebench, bundle, tmp_path, "--gold")["resolved_ids"] == names
    noop = _swebench(swebench, bundle, tmp_path, "-p", bundle / "predictions.noop.jsonl")
    assert (noop["resolved_ids"], noop["unresolved_ids"], noop["error_ids"]) == ([], names, [])
    empty = _swebench(swebench, bundle, tmp_path, "-p", _predictions(tmp_path / "empty.jsonl", names, ""))
    assert (empty["resolved_ids"], empty["empty_patch_ids"]) == ([], names)


def test_swebench_is_not_fooled_by_a_patch_that_holds_only_a_hook(
    swebench: Path, bundles: Path, tmp_path: Path
) -> None:
    bundle = bundles / "swebench"
    added = "".join(f"+{line}\n" for line in HOOK.splitlines())
    patch = (
        "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n"
        f"@@ -0,0 +1,{len(HOOK.splitlines())} @@\n{added}"
    )
    names = _names(bundle)
    report = _swebench(swebench, bundle, tmp_path, "-p", _predictions(tmp_path / "hook.jsonl", names, patch))
    assert (report["resolved_ids"], report["unresolved_ids"]) == ([], names)


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


def _predictions(path: Path, names: list[str], patch: str) -> Path:
    rows = [{"instance_id": name, "model_name_or_path": path.stem, "model_patch": patch} for name in names]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_harbor_rewards_the_oracle_and_not_the_idle(
    agent: str, reward: int, harbor: Path, bundles: Path, tmp_path: Path
) -> None:
    bundle = bundles / "harbor"
    done = subprocess.run(
        [
            harbor / "harbor", "run", "-p", bundle, "-a", agent, "-e", "harbor_engine:PlainEngine",
            "-o", tmp_path / "jobs", "--job-name", agent, "-y",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(bundle), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    )  # fmt: skip
    told = [json.loads(path.read_text()) for path in (tmp_path / "jobs").rglob("reward.json")]
    assert len(told) == len(_names(bundle)), done.stdout + done.stderr
    assert {(one["reward"], one["tampering"], one["patch_applied"]) for one in told} == {(reward, 0, 1)}
