"""Tools that read bundles, installed from PyPI, each with a function that grades all tasks of a bundle with it.

Each has a separate environment in the user's cache, which is made once. Harbor, SkyRL and NeMo-Gym need Python 3.12 or
later. The environment of the trainers takes 8 GB, as torch from PyPI comes with CUDA; nothing here needs a GPU. slime
is not on PyPI: its source comes from GitHub, or from the git URL in MERGEMILL_TESTS_SLIME.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import uv

from builders import interpreters
from builders.bases import ensure_base
from tests.containers import make_services
from tests.exporters import consumer_programs as programs

Rewards = dict[str, tuple[float | None, float | None]]
"""Task's name in the bundle -> rewards of the gold submission and of an empty one; None: there is none."""

TRAINER_PACKAGES = (
    "transformers==5.23.0",
    "tensordict==0.10.0",
    "datasets==5.2.0",
    "ray==2.60.0",
    "hydra-core",
    "pyarrow",
    "codetiming",
    "pillow",
    "aiohttp",
    "loguru",
    "httpx",
    "pybase64",
    "sympy",
    "pylatexenc",
)
TRAINERS = ("verl==0.9.1", "skyrl==0.4.0", "skyrl-gym==0.4.0")
"""Installed without their dependencies, some of which need a GPU."""
SLIME = "https://github.com/THUDM/slime"
SLIME_COMMIT = "624b824a8"


def find_cache() -> Path:
    """Return the folder of the environments."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mergemill-tests"
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def install(
    requirement: str, python: str, *more: str, bare: tuple[str, ...] = (), overrides: tuple[str, ...] = ()
) -> Path:
    """Install requirements in an environment, which the first one names, and return its `bin` folder.

    Args:
        requirement: a package with its version.
        python: interpreter of the environment.
        more: further requirements.
        bare: packages that are installed without their dependencies.
        overrides: requirements that replace those of the packages, as PyPI's mirrors are days behind.
    """
    cache = find_cache()
    others = hashlib.sha256(json.dumps([more, bare]).encode()).hexdigest()[:8] if more or bare else ""
    venv = cache / f"{requirement.replace('==', '-')}{others and '-'}{others}"
    replaced = cache / f"{venv.name}.overrides"
    with (cache / f"{venv.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (venv / "whole").is_file():
            replaced.write_text("".join(f"{override}\n" for override in overrides))
            for command in (
                ["venv", "--clear", "--python", python, venv],
                ["pip", "install", "--python", venv, "--override", replaced, requirement, *more],
                *([["pip", "install", "--python", venv, "--no-deps", *bare]] if bare else []),
            ):
                process = subprocess.run([uv.find_uv_bin(), *command], capture_output=True, text=True, check=False)
                if process.returncode != 0:
                    pytest.fail(f"{requirement} cannot be installed from PyPI: {process.stderr.strip()[-500:]}")
            (venv / "whole").touch()
    return venv / "bin"


def find_newer_python() -> str:
    """Return a Python of 3.12 or later on this machine; skip the test if there is none."""
    if sys.version_info >= (3, 12):
        return sys.executable
    known = {version: interpreter.python for version, interpreter in interpreters.find_interpreters().items()}
    for version in ("3.12", "3.13"):
        if path := known.get(version) or shutil.which(f"python{version}"):
            return path
    pytest.skip("this tool needs Python 3.12 or later, and this machine has none (`uv python install 3.12`)")


def fetch_slime() -> Path:
    """Return a folder with slime's source; skip the test if it cannot be cloned."""
    return fetch_source("slime", SLIME, SLIME_COMMIT)


def fetch_source(name: str, url: str, commit: str) -> Path:
    """Return a folder with the source of a tool; skip the test if it cannot be cloned.

    `MERGEMILL_TESTS_NAME` may name another repository with that commit.
    """
    folder = find_cache() / f"{name}-{commit}"
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).is_dir():
            shutil.rmtree(folder, ignore_errors=True)
            source = os.environ.get(f"MERGEMILL_TESTS_{name.upper()}", url)
            for command in (
                ["clone", "-q", "--no-checkout", source, folder],
                ["-C", folder, "checkout", "-q", commit],
            ):
                process = subprocess.run(["git", *command], capture_output=True, text=True, check=False)
                if process.returncode != 0:
                    pytest.skip(f"{name} cannot be cloned: {process.stderr.strip()[-300:]}")
    return folder


def run_command(command: Path, *words: str | Path, cwd: Path, path: Path | None = None, **variables: str) -> str:
    """Run a program of an environment and return its output; `path` is its PYTHONPATH."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    env |= {"PYTHONPATH": str(path)} if path else {}
    env["PATH"] = f"{command}:{env['PATH']}"
    env["HF_HOME"] = str(cwd / "hub")  # `datasets` finds a folder again by its name, and returns its earlier rows
    process = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False, env=env)
    assert process.returncode == 0, process.stdout[-3000:] + process.stderr[-3000:]
    return process.stdout


def run_program(command: Path, program: str, *words: str | Path, cwd: Path, path: Path | None = None) -> Rewards:
    """Run a program of `consumer_programs` and return the rewards that it prints."""
    output = run_command(command, "python", "-c", program, *words, cwd=cwd, path=path)
    return {
        name: (rewards[0], rewards[1])
        for name, rewards in (json.loads(line) for line in output.splitlines() if line.startswith('["'))
    }


def install_bundle(bundle: Path, folder: Path) -> Path:
    """Install the package of a bundle into a folder for PYTHONPATH."""
    command = [uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--target", folder, bundle]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def _combine(names: Iterable[str], *reports: tuple[Iterable[str], Iterable[str]]) -> Rewards:
    """Return the rewards by two reports, (names resolved, names not resolved), of gold and of nothing."""
    rewards = [dict.fromkeys(solved, 1.0) | dict.fromkeys(unsolved, 0.0) for solved, unsolved in reports]
    return {name: (rewards[0].get(name), rewards[1].get(name)) for name in names}


def _list_names(bundle: Path) -> list[str]:
    return [json.loads(line)["instance_id"] for line in (bundle / "tasks.jsonl").read_text().splitlines()]


def run_swebench(bundle: Path, folder: Path, *words: str | Path) -> dict[str, Any]:
    """Run an evaluation with SWE-bench and return its report."""
    command = install("swebench==5.0.2", sys.executable)
    arguments = [command / "swebench", "eval", bundle / "tasks.jsonl", *words, "--run-id", "it", "-j", "2"]
    for _ in range(3):  # its report inspects all containers of the engine, and fails when another one ends meanwhile
        process = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
        if "No such container" not in process.stderr:
            break
    reports = list(folder.glob("*.it.json"))
    assert len(reports) == 1, process.stdout + process.stderr
    content: dict[str, Any] = json.loads(reports[0].read_text())
    reports[0].unlink()
    return {key: sorted(value) if isinstance(value, list) else value for key, value in content.items()}


def _grade_swebench(bundle: Path, folder: Path) -> Rewards:
    gold = run_swebench(bundle, folder, "--gold")
    noop = run_swebench(bundle, folder, "-p", bundle / "predictions.noop.jsonl")
    return _combine(
        _list_names(bundle), *((report["resolved_ids"], report["unresolved_ids"]) for report in (gold, noop))
    )


def _grade_swe_smith(bundle: Path, folder: Path) -> Rewards:
    command = install("swesmith[all]==0.0.9", sys.executable)
    reports = []
    for name in ("gold", "noop"):
        source = "gold" if name == "gold" else bundle / "predictions.noop.jsonl"
        run_command(command, "python", bundle / "evaluate.py", "--predictions", source, "--run-id", name, cwd=folder)
        report = json.loads((folder / "logs" / "run_evaluation" / name / "report.json").read_text())
        reports.append((report["ids_resolved"], report["ids_unresolved"]))
    return _combine(_list_names(bundle), *reports)


def _grade_multi_swe_bench(bundle: Path, folder: Path) -> Rewards:
    command = install("multi-swe-bench==1.1.2", sys.executable)
    run_command(command, "python", "-c", programs.MULTI_SWE_BENCH_READER, bundle / "tasks.jsonl", cwd=folder)
    rows = [json.loads(line) for line in (bundle / "tasks.jsonl").read_text().splitlines()]
    names = {f"{row['org']}/{row['repo']}:pr-{row['number']}": row["instance_id"] for row in rows}
    reports = []
    for name in ("gold", "noop"):
        words = ["python", bundle / "evaluate.py", "--patches", bundle / f"patches.{name}.jsonl"]
        run_command(command, *words, "--workdir", folder / name, cwd=folder)
        report = json.loads((folder / name / "final_report.json").read_text())
        reports.append(
            [[names[instance_id] for instance_id in report[key]] for key in ("resolved_ids", "unresolved_ids")]
        )
    return _combine(names.values(), *((report[0], report[1]) for report in reports))


def install_harbor() -> Path:
    """Install Harbor and return the `bin` folder of its environment."""
    return install("harbor==0.25.0", find_newer_python(), overrides=("certifi",))


def run_harbor(
    bundle: Path, folder: Path, agent: str, *, base: str = "", **variables: str
) -> dict[str, dict[str, float]]:
    """Run an agent of Harbor on all tasks and return task's name -> what its verifier reports.

    Args:
        bundle: folder of the bundle, where modules are found, too.
        folder: folder for the trials.
        agent: name of the agent, or `MODULE:CLASS`.
        base: image to build from; empty for the plain base of Python 3.11.
        variables: environment variables of Harbor.
    """
    command = install_harbor()
    base = base or ensure_base("python", "3.11", make_services(folder)).name
    job = agent.partition(":")[0]
    words = ["-a", agent, "-e", "harbor_engine:PlainEngine", "-o", folder / "jobs", "--job-name", job, "-y"]
    run_command(
        command,
        "harbor",
        "run",
        "-p",
        bundle,
        *words,
        cwd=folder,
        path=bundle,
        LITELLM_LOCAL_MODEL_COST_MAP="True",
        PLAIN_ENGINE_BUILD_ARGS=f"BASE={base}",
        **variables,
    )
    return {
        Path(json.loads((path.parents[1] / "config.json").read_text())["task"]["path"]).name: json.loads(
            path.read_text()
        )
        for path in (folder / "jobs" / job).rglob("reward.json")
    }


def _grade_harbor(bundle: Path, folder: Path) -> Rewards:
    gold, noop = (run_harbor(bundle, folder, agent) for agent in ("oracle", "nop"))
    names = sorted(path.parent.name for path in bundle.glob("*/task.toml"))
    return {name: (gold.get(name, {}).get("reward"), noop.get(name, {}).get("reward")) for name in names}


def _grade_verifiers(bundle: Path, folder: Path) -> Rewards:
    command = install("verifiers==0.4.0", sys.executable)
    site = install_bundle(bundle, folder / "site")
    base = ensure_base("python", "3.11", make_services(folder)).name  # for tasks that name no image
    words = ["--runtime.type", "docker", "--runtime.image", base, "--rich", "False", "-o", folder / "out"]
    run_command(command, "vf-validate", "mergemill-tasks", *words, cwd=folder, path=site)
    [results] = (folder / "out").rglob("results.jsonl")
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    return {
        row["name"]: (None if row["gold"]["valid"] is None else float(row["gold"]["valid"]), row["noop"]["reward"])
        for row in rows
    }


def _grade_inspect(bundle: Path, folder: Path, sandbox: str = "mergemill_engine") -> Rewards:
    command = install("inspect-ai==0.3.285", sys.executable)
    site = folder / "site" if (folder / "site").is_dir() else install_bundle(bundle, folder / "site")
    return run_program(command, programs.INSPECT, sandbox, cwd=folder, path=site)


def _grade_nemo_gym(bundle: Path, folder: Path) -> Rewards:
    return run_program(install("nemo-gym==0.4.0", find_newer_python()), programs.NEMO_GYM, bundle, cwd=folder)


def _grade_huggingface(bundle: Path, folder: Path) -> Rewards:
    return run_program(install("datasets==5.2.0", sys.executable), programs.HUGGING_FACE, bundle, cwd=folder)


def _grade_with_trainer(program: str, bundle: Path, folder: Path, *, needs_slime: bool = False) -> Rewards:
    command = install("torch==2.9.1", find_newer_python(), *TRAINER_PACKAGES, bare=TRAINERS)
    run_command(command, "python", "-c", programs.TOKENIZER, folder / "tokenizer", cwd=folder)
    source = fetch_slime() if needs_slime else None
    return run_program(command, program, bundle, folder / "tokenizer", cwd=folder, path=source)


@dataclass(frozen=True, kw_only=True)
class Consumer:
    """A tool that reads the bundles of a format.

    `grade` takes a bundle and an empty folder to work in, and returns the rewards of all tasks.
    """

    name: str
    grade: Callable[[Path, Path], Rewards]


CONSUMERS: Mapping[str, Consumer] = {
    "swebench": Consumer(name="`swebench eval` of SWE-bench 5.0.2", grade=_grade_swebench),
    "harbor": Consumer(name="oracle and no-op agents of Harbor 0.25", grade=_grade_harbor),
    "swe-smith": Consumer(name="the harness of SWE-smith 0.0.9", grade=_grade_swe_smith),
    "multi-swe-bench": Consumer(name="the harness of Multi-SWE-bench 1.1.2", grade=_grade_multi_swe_bench),
    "verl": Consumer(
        name="RLHFDataset and naive reward manager of verl 0.9.1", grade=partial(_grade_with_trainer, programs.VERL)
    ),
    "skyrl": Consumer(
        name="PromptDataset of SkyRL 0.4.0 and skyrl-gym 0.4.0", grade=partial(_grade_with_trainer, programs.SKYRL)
    ),
    "slime": Consumer(
        name=f"RolloutDataSource and reward hub of slime ({SLIME_COMMIT})",
        grade=partial(_grade_with_trainer, programs.SLIME, needs_slime=True),
    ),
    "nemo-gym": Consumer(name="resources server in NeMo-Gym 0.4.0", grade=_grade_nemo_gym),
    "verifiers": Consumer(name="`vf-validate` of verifiers 0.4.0", grade=_grade_verifiers),
    "inspect": Consumer(name="`eval` of inspect-ai 0.3.285", grade=_grade_inspect),
    "huggingface": Consumer(name="`load_dataset` of datasets 5.2.0, and the reward module", grade=_grade_huggingface),
}
"""Format -> its consumer."""
