"""The evaluation script: one bash file that verification, certification, grading and every export run unchanged.

What it does stands in `evaluate.sh.j2`, how pytest and unittest are started in `pytest.sh.j2` and `unittest.sh.j2`.
It needs nothing but the task's image: patches and the unittest harness are embedded in it.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath

import jinja2

from backends.git import GitError, git
from taskdb.paths import PROTECTED_PATTERNS, is_test_file
from taskdb.records import TestCommand

TESTS_UID = 1000
"""User and group `mergemill`, who owns the tree and runs the tests, in every image."""

REPORT_BYTES = 128 * 1024 * 1024
"""What is read of a JUnit report at most."""

LINGER_SECONDS = 20
"""How long a runner may take to end once its report is written."""

CONFIG_PATTERNS: tuple[str, ...] = (r"(^|/)(pyproject\.toml|setup\.cfg)$",)
"""Files that may hold the runner's configuration beside other things. A submission's edits of them are put back too:
nothing of them is read again after the environment was made, but for the tools' sections. Where the gold patch changes
one, its version belongs to the tests' side (`config_patch`)."""

_CONFIG = re.compile(rb"^diff --git .*[ /](pyproject\.toml|setup\.cfg)$")

SHADOWING_PATTERNS: tuple[str, ...] = (
    r"^((src|lib)/)?(_?pytest|pluggy|py|iniconfig|xdist|unittest|junitxml|xml|sitecustomize|usercustomize|encodings)(\.[^/]*)?(/|$)",
    r"(^|/)(sitecustomize|usercustomize)(\.[^/]*)?(/|$)",
)
"""Modules which, when a submission adds them, could stand in for the runner or run before it."""

_CANARY = {
    "pytest": "def test_%s():\n    assert 3 * 4 == %s\n",
    "unittest": "import unittest\n\n\nclass Test(unittest.TestCase):\n"
    "    def test_%s(self):\n        self.assertEqual(3 * 4, %s)\n",
}


def render(
    test: TestCommand,
    *,
    workdir: str,
    test_patch: bytes,
    files: Sequence[str],
    canary_dir: str | None,
    env: Sequence[tuple[str, str]] = (),
    config_patch: bytes = b"",
) -> str:
    """The evaluation script of one task.

    Args:
        test: how the project's tests are run.
        workdir: the tree, a git repository whose HEAD is the base commit.
        test_patch: the hidden tests, as `git diff --binary` writes them; may be empty.
        files: test files to run; empty runs what `test` names.
        canary_dir: folder in the tree in which two canary tests are put for the time of a run; None puts none.
        env: variables the tests see beside the fixed ones (the plan's `env`).
        config_patch: the gold patch's part on CONFIG_PATTERNS.
    """
    argv, python = list(test.argv), "python"
    if test.framework == "unittest" and PurePosixPath(argv[0]).name.startswith("python"):
        python = argv.pop(0)
    return _template().render(
        framework=test.framework, argv=argv, paths=test.paths, python=python, harness=_base64(_harness()),
        workdir=workdir, files=files, env=env, uid=TESTS_UID, report_bytes=REPORT_BYTES,
        linger=LINGER_SECONDS,
        patches=[(name, _base64(patch)) for name, patch in (("config", config_patch), ("test", test_patch)) if patch],
        patched=[_bash_word(path) for path in _patched_paths(test_patch)],
        protected=PROTECTED_PATTERNS + CONFIG_PATTERNS, shadowing=SHADOWING_PATTERNS,
        canary_dir=canary_dir, canary_file=_canary_name(files), canary_text=_CANARY[test.framework],
    )  # fmt: skip


def config_part(gold_patch: bytes) -> bytes:
    """The gold patch's part on files that may hold the runner's configuration (CONFIG_PATTERNS)."""
    sections = re.split(rb"(?m)^(?=diff --git )", gold_patch)
    return b"".join(part for part in sections if _CONFIG.search(part.partition(b"\n")[0].rstrip(b'"')))


def _canary_name(files: Sequence[str]) -> str:
    """A bash word for a canary's file name, formed as the test files are, so that a suite's patterns take it in."""
    named = [PurePosixPath(file).name for file in files if is_test_file(file)]
    return '"${word}_test.py"' if named and all(name.endswith("_test.py") for name in named) else '"test_$word.py"'


def _patched_paths(patch: bytes) -> list[bytes]:
    """The files that a patch leaves changed; none when git cannot read it, which the script then finds out, too."""
    try:
        lines = git("apply", "--numstat", "-z", cwd=Path("/"), data=patch).split(b"\0") if patch else []
    except GitError:
        return []
    return [line.split(b"\t", 2)[2] for line in lines if line]


def _bash_word(content: bytes) -> str:
    """Bytes as one word of bash."""
    plain = content.decode("ascii", errors="replace")
    return shlex.quote(plain) if plain.isprintable() and plain.isascii() else f"$'{_escaped(content)}'"


def _escaped(content: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in content)


def _base64(content: bytes) -> str:
    return base64.encodebytes(content).decode().rstrip("\n")


@cache
def _harness() -> bytes:
    return (Path(__file__).parent / "harness" / "unittest_junit.py").read_bytes()


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
        comment_start_string="<#", comment_end_string="#>",  # bash has ${#array[@]}
        autoescape=False,  # noqa: S701 - bash, not HTML; `sh` quotes
    )  # fmt: skip
    environment.filters["sh"] = shlex.quote
    return environment.get_template("evaluate.sh.j2")
