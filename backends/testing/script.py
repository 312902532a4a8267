"""The evaluation script: one bash file that verification, certification, grading and every export run unchanged.

What it does stands in `evaluate.sh.j2`; how a framework is started its language tells (`languages.base.Framework`). It
needs nothing but the task's image: patches and harnesses are embedded in it.
"""

from __future__ import annotations

import base64
import os
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2

from backends.git import GitError, touched
from backends.testing.reports import archive
from languages.paths import config_patterns, is_config, protected_patterns
from languages.registry import frameworks
from mergemill.errors import InputError
from taskdb.records import BuildPlan, TestCommand

TESTS_UID = 1000
"""User and group `mergemill`, who owns the tree and runs the tests, in every image."""

REPORT_BYTES = 128 * 1024 * 1024
"""What is read of a JUnit report at most."""

CONVERT_SECONDS = 120
"""How long turning the runner's own report into ours may take."""

LINGER_SECONDS = 20
"""How long a runner may take to end once its report is written."""

SHADOWING_PATTERNS: tuple[str, ...] = (
    r"^((src|lib)/)?(_?pytest|pluggy|py|iniconfig|xdist|unittest|junitxml|xml|sitecustomize|usercustomize|encodings)(\.[^/]*)?(/|$)",
    r"(^|/)(sitecustomize|usercustomize)(\.[^/]*)?(/|$)",
)
"""Modules which, when a submission adds them, could stand in for the runner or run before it."""


def render_plan(
    plan: BuildPlan,
    *,
    test_patch: bytes,
    files: Sequence[str],
    canaries_beside: Sequence[str],
    config_patch: bytes = b"",
    metered: bool = False,
) -> str:
    """The evaluation script of a task in the box of a plan; the other arguments as in `render`."""
    return render(
        plan.test, workdir=plan.workdir, test_patch=test_patch, files=files, canaries_beside=canaries_beside,
        env=plan.env, config_patch=config_patch, services=plan.services, kept_folders=plan.kept_folders,
        metered=metered,
    )  # fmt: skip


def render(
    test: TestCommand,
    *,
    workdir: str,
    test_patch: bytes,
    files: Sequence[str],
    canaries_beside: Sequence[str],
    env: Sequence[tuple[str, str]] = (),
    config_patch: bytes = b"",
    services: Sequence[str] = (),
    kept_folders: Sequence[str] = (),
    metered: bool = False,
) -> str:
    """The evaluation script of one task.

    Args:
        test: how the project's tests are run.
        workdir: the tree, a git repository whose HEAD is the base commit.
        test_patch: the hidden tests, as `git diff --binary` writes them; may be empty.
        files: test files to run; empty runs what `test` names.
        canaries_beside: test files; beside most of them, and called as they are, two canary tests are put for the time
            of a run. None of none.
        env: variables the tests see beside the fixed ones (the plan's `env`).
        config_patch: the gold patch's part on files that may hold the runner's configuration (`config_part`).
        services: servers to start before the tests (the plan's `services`).
        kept_folders: folders that were filled when the environment was made (the plan's `kept_folders`).
        metered: whether it tells the processor time that the tests took, all their processes together.
    """
    framework = frameworks()[test.framework]
    canary = framework.canary if canaries_beside else None
    return _template().render(
        framework=framework, argv=test.argv, paths=test.paths, folder=test.folder, harness=harness,
        workdir=workdir, files=files, env=env, uid=TESTS_UID, report_bytes=REPORT_BYTES, linger=LINGER_SECONDS,
        convert_seconds=CONVERT_SECONDS, services=[(name, service_shell(name)) for name in services],
        kept_folders=kept_folders, metered=metered,
        patches=[(name, _base64(patch)) for name, patch in (("config", config_patch), ("test", test_patch)) if patch],
        patched=[_bash_word(os.fsencode(path)) for path in _patched_paths(test_patch)],
        protected=protected_patterns() + config_patterns(), shadowing=SHADOWING_PATTERNS,
        canary=canary, canary_dir=_common_folder(canaries_beside) if canary else "",
        canary_file=canary.name(canaries_beside) if canary else "",
    )  # fmt: skip


def _common_folder(files: Sequence[str]) -> str:
    """The folder in which most of the files are, `.` for the root."""
    return Counter(posixpath.dirname(path) or "." for path in sorted(files)).most_common(1)[0][0]


def config_part(gold_patch: bytes) -> bytes:
    """The gold patch's part on files that may hold the runner's configuration (`languages.paths.config_patterns`)."""
    sections = re.split(rb"(?m)^(?=diff --git )", gold_patch)
    return b"".join(part for part in sections if is_config(_new_path(part)))


def _new_path(section: bytes) -> str:
    """The path behind the change of a patch's section, as its first line has it."""
    line = section.partition(b"\n")[0].rstrip(b'"').decode(errors="replace")
    return line.rpartition(" b/")[2] if line.startswith("diff --git ") else ""


def _patched_paths(patch: bytes) -> list[str]:
    """The files that a patch leaves changed; none when git cannot read it, which the script then finds out, too."""
    try:
        return touched(patch)
    except GitError:
        return []


def _bash_word(content: bytes) -> str:
    """Bytes as one word of bash."""
    plain = content.decode("ascii", errors="replace")
    return shlex.quote(plain) if plain.isprintable() and plain.isascii() else f"$'{_escaped(content)}'"


def _escaped(content: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in content)


def _base64(content: bytes) -> str:
    return base64.encodebytes(content).decode().rstrip("\n")


@cache
def harness(name: str) -> str:
    """A file of `harness/`, or the packed `reports.pyz`, in base64, as a here-document holds it."""
    if name == "reports.pyz":
        return _base64(archive())
    return _base64((Path(__file__).parent / "harness" / name).read_bytes())


def service_shell(name: str) -> str:
    """Bash that starts a server of `services/` for the time of a run.

    Raises:
        InputError: there is no such server.
    """
    file = Path(__file__).parent / "services" / f"{name}.sh"
    if not file.is_file():
        known = ", ".join(sorted(other.stem for other in file.parent.glob("*.sh")))
        raise InputError(f"{name} cannot be started for tests", advice=f"known: {known or 'none'}")
    return file.read_text(encoding="utf-8")


def _source(name: str) -> str | None:
    """The script itself, or how a framework starts (`framework:NAME`)."""
    kind, _, framework = name.partition(":")
    if kind == "framework":
        return frameworks()[framework].shell
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        comment_start_string="<#", comment_end_string="#>",  # bash has ${#array[@]}
        autoescape=False,  # noqa: S701 - bash, not HTML; `sh` quotes
    )  # fmt: skip
    environment.filters["sh"] = shlex.quote
    return environment.get_template("evaluate.sh.j2")
