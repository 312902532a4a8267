"""Files that a submitted test patch touches, read by git in the task's container, and the rules that they must meet.

A submission for a test-writing task may add and change tests and the files beside them, and nothing else. The path
rules decide first. A new file that they do not recognise counts as a test when the framework collects tests from it
without being given its path (`evaluation.submitted_tests.runner`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backends.sandbox.base import ContainerPool
from core.errors import Transient
from evaluation.script.render import SHADOWING_PATTERNS
from languages.paths import is_runner_config, is_test_file, is_test_path
from languages.registry import detect_file_language

MAX_PATCH_BYTES = 8 * 1024 * 1024
"""Largest test patch that is read."""
ABSENT_MODE = "000000"
"""Git's mode of an absent file."""
REGULAR_MODES = ("100644", "100755")

# Changes the index only. The second attempt tolerates the same faults as `evaluation.runner.run` does.
_READ_SCRIPT = """
run_dir="$1" && chmod 711 "$run_dir" && cd "$2" && mkdir "$run_dir/read" || exit 97
run() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.quotepath=true "$@"; }
run reset -q || exit 97
run apply --cached --whitespace=nowarn "$run_dir/patch" ||
run apply --cached --whitespace=nowarn --recount --ignore-whitespace -C1 "$run_dir/patch" || exit 96
options=(--cached --no-renames --no-ext-diff --no-textconv --full-index)
run diff "${options[@]}" --raw -z HEAD > "$run_dir/read/raw" &&
run diff "${options[@]}" --binary --src-prefix=a/ --dst-prefix=b/ --unified=3 HEAD > "$run_dir/read/patch" || exit 97
"""
_PATCH_FAILED_EXIT = 96
_SHADOWING_PATTERN = re.compile("|".join(SHADOWING_PATTERNS))


@dataclass(frozen=True, kw_only=True)
class TouchedFile:
    """A file that a patch adds, changes or deletes; a renamed file counts twice. Modes as in git, `000000` for none."""

    path: str
    mode_before: str
    mode_after: str

    @property
    def is_new(self) -> bool:
        """Whether the patch adds the file."""
        return self.mode_before == ABSENT_MODE

    @property
    def is_deleted(self) -> bool:
        """Whether the patch deletes the file."""
        return self.mode_after == ABSENT_MODE


@dataclass(frozen=True, kw_only=True)
class SubmittedPatch:
    """A submitted patch as git rewrites it, and the files it touches, sorted by path."""

    patch: bytes
    files: tuple[TouchedFile, ...]

    def list_existing_tests(self, language: str) -> list[str]:
        """Return the touched test files that existed before the patch, sorted."""
        return [file.path for file in self.files if not file.is_new and is_test_file(file.path, language)]

    def list_possible_tests(self, language: str) -> list[str]:
        """Return the remaining files in which a framework may find tests, sorted.

        They include the unrecognised files, for which the framework decides.
        """
        present = [file.path for file in self.files if not file.is_deleted]
        return [path for path in present if is_test_file(path, language) or path in self.unrecognized_files]

    @property
    def unrecognized_files(self) -> frozenset[str]:
        """New program files that count as tests only if the framework collects tests from them by itself."""
        return frozenset(file.path for file in self.files if _is_possible_test(file))


def read_submitted_patch(pool: ContainerPool, workdir: str, patch: bytes) -> SubmittedPatch | None:
    """Return what a patch touches of the container's tree; None when it does not apply. It is the pool's last run.

    Raises:
        Transient: the engine failed, or git failed in the container.
    """
    if not patch.strip():
        return SubmittedPatch(patch=b"", files=())
    if len(patch) > MAX_PATCH_BYTES:
        return None
    run_dir = f"/mergemill-{secrets.token_hex(8)}"
    result = pool.run(
        ["/bin/bash", "-c", _READ_SCRIPT, "mergemill", run_dir, workdir],
        files={f"{run_dir}/patch": patch},
        collect=[f"{run_dir}/read/raw", f"{run_dir}/read/patch"],
        last=True,
    )
    if result.exit_code == _PATCH_FAILED_EXIT and not result.killed_by:
        return None
    collected = {path.rpartition("/")[2]: content for path, content in result.files.items()}
    if result.exit_code or collected.keys() != {"raw", "patch"}:
        raise Transient(f"git cannot read a patch in its container: {result.output.strip()[-200:]}")
    return SubmittedPatch(patch=collected["patch"], files=tuple(_parse_raw_diff(collected["raw"])))


def find_violation(files: Iterable[TouchedFile]) -> str | None:
    """Return why a patch is no test patch, by paths and modes alone; None when it meets all rules."""
    rules = (_check_regular_file, _check_runner_config, _check_shadowing, _check_test_path)
    files = list(files)
    if not files:
        return "the patch is empty"
    return next((detail for file in files for rule in rules if (detail := rule(file))), None)


# ------------------------------------------------------------------------------------------------ rules of a file


def _check_regular_file(file: TouchedFile) -> str | None:
    regular = file.is_deleted or file.mode_after in REGULAR_MODES
    return None if regular else f"{file.path} is no regular file"


def _check_runner_config(file: TouchedFile) -> str | None:
    return f"{file.path} configures the test runner" if is_runner_config(file.path) else None


def _check_shadowing(file: TouchedFile) -> str | None:
    return f"{file.path} would shadow a module of the runner" if _SHADOWING_PATTERN.search(file.path) else None


def _check_test_path(file: TouchedFile) -> str | None:
    return None if is_test_path(file.path) or _is_possible_test(file) else f"{file.path} is no test"


def _is_possible_test(file: TouchedFile) -> bool:
    """Return whether the framework must decide: a new program file where no rule expects tests."""
    return file.is_new and not is_test_path(file.path) and bool(detect_file_language(file.path))


def _parse_raw_diff(raw: bytes) -> Iterable[TouchedFile]:
    """Yield the rows of `git diff --raw -z`: `:100644 000000 OLD NEW D` and the path."""
    words: Sequence[bytes] = raw.split(b"\0")[:-1]
    for head, path in zip(words[::2], words[1::2], strict=True):
        before, after = head.decode().lstrip(":").split()[:2]
        yield TouchedFile(path=path.decode(errors="surrogateescape"), mode_before=before, mode_after=after)
