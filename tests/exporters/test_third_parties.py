"""What SWE-bench 5.0.2, mini-swe-agent 2.4.6 and Harbor 0.25 do with bundles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from exporters.formats.swebench import LOG_PARSER, escape_test_id
from tests.backends.llm.server import Script, ScriptedAnswer, ScriptedToolCall, run_model_server
from tests.cli import run_mergemill
from tests.exporters.consumers import install, install_harbor, run_command, run_harbor, run_swebench
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


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a bundle of each format, exported from the sample's two bug fixes."""
    folder = tmp_path_factory.mktemp("bundles")
    make_sample(folder / "greet")
    ran = run_mergemill("run", "git:greet", cwd=folder)
    assert ran.exit_code == 0, ran.stderr
    for format_name in ("swebench", "harbor"):
        exported = run_mergemill("export", "--format", format_name, "--out", format_name, cwd=folder)
        assert exported.exit_code == 0, exported.stderr
    return folder


def _names(bundle: Path) -> list[str]:
    names = sorted(task["name"] for task in json.loads((bundle / "manifest.json").read_text())["tasks"])
    assert len(names) == 2
    return names


def test_swebench_reports_empty_patches(bundles: Path, tmp_path: Path) -> None:
    bundle = bundles / "swebench"
    names = _names(bundle)
    empty = run_swebench(bundle, tmp_path, "-p", _predictions(tmp_path / "empty.jsonl", names, ""))
    assert (empty["resolved_ids"], empty["empty_patch_ids"]) == ([], names)


def test_swebench_does_not_resolve_a_patch_that_only_adds_a_hook(bundles: Path, tmp_path: Path) -> None:
    bundle = bundles / "swebench"
    added = "".join(f"+{line}\n" for line in HOOK.splitlines())
    patch = (
        "diff --git a/conftest.py b/conftest.py\nnew file mode 100644\n--- /dev/null\n+++ b/conftest.py\n"
        f"@@ -0,0 +1,{len(HOOK.splitlines())} @@\n{added}"
    )
    names = _names(bundle)
    report = run_swebench(bundle, tmp_path, "-p", _predictions(tmp_path / "hook.jsonl", names, patch))
    assert (report["resolved_ids"], report["unresolved_ids"]) == ([], names)


def test_the_log_parser_of_swebench_reads_escaped_ids(tmp_path: Path) -> None:
    command = install("swebench==5.0.2", sys.executable)
    lines = "".join(f"PASSED {escape_test_id(test)}\nFAILED {escape_test_id('f' + test)}\n" for test in NASTY)
    (tmp_path / "log").write_text(lines)
    program = (
        "import json, sys; from swebench.harness.log_parsers import PARSER_REGISTRY as parsers;"
        f"print(json.dumps(parsers[{LOG_PARSER!r}](open(sys.argv[1]).read(), None)))"
    )
    process = subprocess.run(
        [command / "python", "-c", program, tmp_path / "log"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    passed = {escape_test_id(test): "PASSED" for test in NASTY}
    assert json.loads(process.stdout) == passed | {escape_test_id("f" + test): "FAILED" for test in NASTY}


def _predictions(path: Path, names: list[str], patch: str) -> Path:
    rows = [{"instance_id": name, "model_name_or_path": path.stem, "model_patch": patch} for name in names]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


MINI_SWE_AGENT = ("mini-swe-agent==2.4.6", sys.executable, "datasets==5.2.0", "mcp", "orjson", "fastapi")
"""It lacks three packages that litellm imports once a request has tools."""
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def _run_mini_swe_agent(command: Path, bundle: Path, out: Path, script: Script) -> Path:
    """Run the batch runner with a scripted model on all rows of a bundle and return the predictions."""
    words = ["swebench", "--subset", bundle, "--split", "test", "-m", "openai/scripted", "-o", out]
    with run_model_server(script) as server:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
            "OPENAI_API_BASE": server.url,
            "OPENAI_API_KEY": "none",
            "NO_PROXY": "127.0.0.1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "1",
            "MSWEA_GLOBAL_CONFIG_DIR": str(out.parent / "settings"),
            "HF_HOME": str(out.parent / "hub"),
            "HF_HUB_OFFLINE": "1",
        }
        process = subprocess.run(
            [command / "mini-extra", *words], capture_output=True, text=True, check=False, env=env, cwd=out.parent
        )
    assert (out / "preds.json").is_file(), process.stdout[-3000:] + process.stderr[-3000:]
    return out / "preds.json"


def test_patches_of_mini_swe_agent_are_resolved_by_swebench(bundles: Path, tmp_path: Path) -> None:
    command, bundle = install(*MINI_SWE_AGENT), bundles / "swebench"
    rows = [json.loads(line) for line in (bundle / "tasks.jsonl").read_text().splitlines()]

    def solve(request: Mapping[str, Any]) -> ScriptedAnswer:
        """Apply the gold patch of the row whose statement is in the prompt, write the difference, and submit it."""
        turns = sum(message["role"] == "assistant" for message in request["messages"])
        [patch] = [
            row["patch"] for row in rows if row["problem_statement"].splitlines()[0] in str(request["messages"][1])
        ]
        commands = (
            f"git apply << 'END_OF_PATCH'\n{patch}\nEND_OF_PATCH",
            "git diff > /tmp/patch.txt",
            f"{SUBMIT} && cat /tmp/patch.txt",
        )
        return ScriptedAnswer(calls=(ScriptedToolCall("bash", {"command": commands[turns]}),))

    def give_up(_: Mapping[str, Any]) -> ScriptedAnswer:
        return ScriptedAnswer(calls=(ScriptedToolCall("bash", {"command": SUBMIT}),))

    gold = _run_mini_swe_agent(command, bundle, tmp_path / "gold", solve)
    assert run_swebench(bundle, tmp_path, "-p", gold)["resolved_ids"] == _names(bundle)
    empty = _run_mini_swe_agent(command, bundle, tmp_path / "empty", give_up)
    report = run_swebench(bundle, tmp_path, "-p", empty)
    assert (report["resolved_ids"], report["empty_patch_ids"]) == ([], _names(bundle))


HARBOR_KINDS = ("bugfix", "injected", "review", "test-writing")
"""Kinds that the sample gives; performance has a test of its verifier (test_verifiers), as it needs an idle machine."""


@pytest.fixture(scope="module")
def harbor_bundle(bundles: Path) -> Path:
    """Bundle with tasks of HARBOR_KINDS."""
    kinds = ",".join(HARBOR_KINDS)
    ran = run_mergemill("run", "git:greet", "--kind", kinds, cwd=bundles)
    assert ran.exit_code == 0, ran.stderr
    exported = run_mergemill("export", "--format", "harbor", "--out", "kinds", "--kind", kinds, cwd=bundles)
    assert exported.exit_code == 0, exported.stderr
    names = {path.parent.name.partition(".")[2].rstrip("-0123456789") for path in bundles.glob("kinds/*/task.toml")}
    assert names == set(HARBOR_KINDS)
    return bundles / "kinds"


@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_harbor_rewards_the_oracle_of_every_kind_but_not_the_noop(
    agent: str, reward: int, harbor_bundle: Path, tmp_path: Path
) -> None:
    rewards = run_harbor(harbor_bundle, tmp_path, agent)
    assert rewards.keys() == {
        task["name"] for task in json.loads((harbor_bundle / "manifest.json").read_text())["tasks"]
    }
    assert {(earned["reward"], earned["tampering"]) for earned in rewards.values()} == {(reward, 0)}, rewards


def test_harbor_computes_the_digests_of_the_data_set(harbor_bundle: Path) -> None:
    command = install_harbor()
    program = (
        "import sys; from pathlib import Path; from harbor.publisher.packager import Packager;"
        "from harbor.models.dataset.manifest import DatasetManifest; from harbor.models.registry import Registry;"
        "folder = Path(sys.argv[1]); [one] = Registry.from_path(folder / 'registry.json').datasets;"
        "data = DatasetManifest.from_toml((folder / 'dataset.toml').read_text());"
        "found = ['sha256:' + Packager.compute_content_hash(folder / task.path)[0] for task in one.tasks];"
        "assert found == [task.digest for task in data.tasks], found; print(len(found))"
    )
    process = subprocess.run(
        [command / "python", "-c", program, harbor_bundle], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) == len(json.loads((harbor_bundle / "manifest.json").read_text())["tasks"])


def test_the_linter_of_harbor_finds_nothing(harbor_bundle: Path, tmp_path: Path) -> None:
    command = install_harbor()
    folders = sorted(path.parent for path in harbor_bundle.glob("*/task.toml"))
    output = run_command(
        command, "harbor", "lint", "--json", *folders, cwd=tmp_path, LITELLM_LOCAL_MODEL_COST_MAP="True"
    )
    assert json.loads(output) == []
