"""Rendering of the evaluation script, a bash file that verification, certification, grading and exports share.

`evaluate.sh.j2` is its template; each language defines how its frameworks are started (`languages.base.Framework`). The
script needs nothing but the task's image: patches and harnesses are embedded in it.
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
from typing import Any

import jinja2

from backends.git import GitError, list_patch_paths
from core.errors import InputError
from core.patch_headers import read_path, split_sections
from core.templates import make_environment
from evaluation.reports.converter import pack_converter
from guest.harness import HARNESS_FOLDER
from guest.reports.entries import MAX_LIST_BYTES
from guest.reports.junit import MAX_REPORT_BYTES
from languages.paths import is_config, list_config_patterns, list_protected_patterns
from languages.registry import frameworks_by_name
from taskdb.records import BuildPlan, TestCommand

TESTS_UID = 1000
"""Uid and gid of `mergemill`, which owns the tree and runs the tests in every image."""

CONVERT_SECONDS = 120
"""Time limit for converting the runner's own report to the canonical form."""

LINGER_SECONDS = 20
"""Time limit for the runner to exit once its report is written."""

RUNNER_MODULES = (
    r"^((src|lib)/)?(_?pytest|pluggy|py|iniconfig|xdist"
    r"|unittest|junitxml|xml|sitecustomize|usercustomize|encodings)(\.[^/]*)?(/|$)"
)
STARTUP_MODULES = r"(^|/)(sitecustomize|usercustomize)(\.[^/]*)?(/|$)"
SHADOWING_PATTERNS: tuple[str, ...] = (RUNNER_MODULES, STARTUP_MODULES)
"""Paths of modules that would shadow the runner, or run before it, when a submission adds them."""


def render_plan_script(
    plan: BuildPlan,
    *,
    test_patch: bytes,
    files: Sequence[str],
    canaries_beside: Sequence[str],
    config_patch: bytes = b"",
    metered: bool = False,
    timed_rounds: str = "",
) -> str:
    """Return the evaluation script for an environment built from `plan`; other arguments as in `render_script`."""
    return render_script(
        plan.test,
        workdir=plan.workdir,
        test_patch=test_patch,
        files=files,
        canaries_beside=canaries_beside,
        env=plan.env,
        config_patch=config_patch,
        services=plan.services,
        kept_folders=plan.kept_folders,
        metered=metered,
        timed_rounds=timed_rounds,
    )


def render_script(
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
    timed_rounds: str = "",
) -> str:
    """Return the evaluation script of a task.

    Args:
        test: the command that runs the project's tests.
        workdir: folder of the tree, a git repository whose HEAD is the base commit.
        test_patch: the hidden tests in the form of `git diff --binary`; may be empty.
        files: test files to run; empty runs the files that `test` names.
        canaries_beside: test files. During a run two canary tests lie in the folder of most of these files, under names
            of the same form. No files, no canaries.
        env: variables for the tests, in addition to the fixed variables (the plan's `env`). A time zone other than UTC,
            which the project sets, holds in every run; UTC is the default, which `MERGEMILL_TZ` replaces.
        config_patch: the gold patch's changes to files that may hold the runner's configuration (see
            `extract_config_patch`).
        services: servers to start before the tests (the plan's `services`).
        kept_folders: folders that were filled when the environment was built (the plan's `kept_folders`).
        metered: whether the script reports the processor time of the tests and all their processes.
        timed_rounds: settings of `harness/workload/timed_rounds.py`, which builds the tests before the meter starts and
            runs them in place of the framework; empty for the framework.

    Raises:
        InputError: there is no service of that name.
    """
    return _load_template().render(
        workdir=workdir,
        files=files,
        env=[(name, value) for name, value in env if (name, value) != ("TZ", "UTC")],
        services=[(name, read_service_script(name)) for name in services],
        kept_folders=kept_folders,
        metered=metered,
        timed_rounds=_encode_base64(timed_rounds.encode()),
        patches=_encode_patches(config=config_patch, test=test_patch),
        patched=_quote_paths(test_patch),
        reconfigured=_quote_paths(config_patch),
        **_make_framework_values(test, canaries_beside),
        harness=encode_harness,
        linger=LINGER_SECONDS,
        **_FIXED_VALUES,
    )


_FIXED_VALUES = {
    "uid": TESTS_UID,
    "report_bytes": MAX_REPORT_BYTES,
    "known_bytes": MAX_LIST_BYTES,
    "convert_seconds": CONVERT_SECONDS,
    "shadowing": SHADOWING_PATTERNS,
    "runner_modules": RUNNER_MODULES,
    "startup_modules": STARTUP_MODULES,
}
"""Template variables that are the same for every script."""


def _make_framework_values(test: TestCommand, canaries_beside: Sequence[str]) -> dict[str, Any]:
    """Return the template variables for the test command, its framework, canaries and protected paths."""
    framework = frameworks_by_name()[test.framework]
    canary = framework.canary if canaries_beside else None
    folder = _find_common_folder(canaries_beside) if canary else ""
    # A suite that is a list of files, as of tests at the root of a tree, has no other file in it.
    is_apart = bool(canary) and framework.takes_paths and not _has_folder(test.paths, folder)
    return {
        "framework": framework,
        "argv": test.argv,
        "paths": test.paths,
        "folder": test.folder,
        "protected": list_protected_patterns() + list_config_patterns(),
        "protected_entries": [_match_entry(path) for path in list_protected_patterns() + list_config_patterns()],
        "guarded": list_protected_patterns(),
        "config": list_config_patterns(),
        "canary": canary,
        "canary_dir": folder,
        "canary_is_apart": is_apart,
        "canary_file": canary.name(canaries_beside) if canary else "",
    }


def _match_entry(pattern: str) -> str:
    """Return the pattern for rows of `git ls-files -s`, in which a tab precedes the path."""
    return re.sub(r"(?<!\[)\^", "\t", pattern)


def _find_common_folder(files: Sequence[str]) -> str:
    """Return the folder that holds most of the files, `.` for the root."""
    # Of equal counts Counter returns the first, so sorted files give the same script in any order.
    return Counter(posixpath.dirname(path) or "." for path in sorted(files)).most_common(1)[0][0]


def _has_folder(paths: Sequence[str], folder: str) -> bool:
    """Return whether a folder, `.` for the root, is in one of the paths; without any the whole tree is."""
    tops = [posixpath.normpath(path) for path in paths]
    return not tops or any(top in (".", folder) or folder.startswith(f"{top}/") for top in tops)


def extract_config_patch(gold_patch: bytes) -> bytes:
    """Return the gold patch's changes to files that may configure the runner (`list_config_patterns`)."""
    sections = split_sections(gold_patch.decode(errors="surrogateescape"))
    return "".join(part for part in sections if is_config(read_path(part))).encode(errors="surrogateescape")


def leave_out_config(gold_patch: bytes) -> bytes:
    """Return the gold patch without its changes to files that may configure the runner.

    The script makes those in the tree of every run, so that the patch does not apply where one has run before.
    """
    sections = split_sections(gold_patch.decode(errors="surrogateescape"))
    return "".join(part for part in sections if not is_config(read_path(part))).encode(errors="surrogateescape")


def _quote_paths(patch: bytes) -> list[str]:
    """Return the paths of a patch as words of bash; none when git cannot read it, which the script then reports."""
    try:
        return [_quote_bytes(os.fsencode(path)) for path in list_patch_paths(patch)]
    except GitError:
        return []


def _quote_bytes(content: bytes) -> str:
    """Return the bytes as a word of bash."""
    plain = content.decode("ascii", errors="replace")
    return shlex.quote(plain) if plain.isprintable() and plain.isascii() else f"$'{_escape_bytes(content)}'"


def _escape_bytes(content: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in content)


def _encode_patches(**patches: bytes) -> list[tuple[str, str]]:
    """Return (name, base64 text) of the patches that are not empty."""
    return [(name, _encode_base64(patch)) for name, patch in patches.items() if patch]


def _encode_base64(content: bytes) -> str:
    return base64.encodebytes(content).decode().rstrip("\n")


@cache
def encode_harness(name: str) -> str:
    """Return a file of `harness/`, or the packed `reports.pyz`, in base64 for a here-document."""
    if name == "reports.pyz":
        return _encode_base64(pack_converter())
    return _encode_base64((HARNESS_FOLDER / name).read_bytes())


def read_service_script(name: str) -> str:
    """Return the bash function body that starts a server of `services/`.

    Raises:
        InputError: there is no service of that name.
    """
    file = Path(__file__).parent / "services" / f"{name}.sh"
    if not file.is_file():
        names = ", ".join(sorted(other.stem for other in file.parent.glob("*.sh")))
        raise InputError(f"there is no service {name!r} to start for tests", advice=f"services: {names or 'none'}")
    return file.read_text(encoding="utf-8")


def _load_source(name: str) -> str | None:
    """Return the script's template, or the shell text that starts a framework (`framework:NAME`)."""
    kind, _, framework = name.partition(":")
    if kind == "framework":
        return frameworks_by_name()[framework].shell
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


@cache
def _load_template() -> jinja2.Template:
    # Bash uses `{#` in `${#array[@]}`, so comments of the templates have other marks.
    environment = make_environment(_load_source, comment_marks=("<#", "#>"))
    return environment.get_template("evaluate.sh.j2")
