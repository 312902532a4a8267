"""Files that a submitted test patch touches, read by git in the task's container, and the rules that they must meet.

The rules themselves are in `guest.scoring.patch_rules`, the patterns in `languages.paths`.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from backends.sandbox.base import ContainerPool
from core.errors import Transient
from evaluation.runner.run import load_patch_program
from evaluation.script.render import SHADOWING_PATTERNS
from guest.scoring.patch_rules import (
    MAX_PATCH_BYTES,
    PATCH_FAILED_EXIT,
    READ_SCRIPT,
    TestPathRules,
    TouchedFile,
    parse_raw_diff,
)
from languages.paths import list_config_patterns, list_runner_patterns, list_test_patterns
from languages.registry import get_language, languages_by_suffix


@dataclass(frozen=True, kw_only=True)
class SubmittedPatch:
    """A submitted patch as git rewrites it, and the files it touches, sorted by path."""

    patch: bytes
    files: tuple[TouchedFile, ...]

    def list_existing_tests(self, language: str) -> list[str]:
        """Return the touched test files that existed before the patch, sorted."""
        return load_path_rules(language).list_existing_tests(self.files)

    def list_possible_tests(self, language: str) -> list[str]:
        """Return the remaining files in which a framework may find tests, sorted."""
        return load_path_rules(language).list_possible_tests(self.files)

    @property
    def unrecognized_files(self) -> frozenset[str]:
        """New program files that count as tests only if the framework collects tests from them by itself."""
        return frozenset(file.path for file in self.files if load_path_rules().is_unrecognized(file))


def read_submitted_patch(pool: ContainerPool, workdir: str, patch: bytes) -> SubmittedPatch | None:
    """Return the files that a patch touches of the container's tree; None when it does not apply.

    It is the pool's last run.

    Raises:
        Transient: the engine failed, or git failed in the container.
    """
    if not patch.strip():
        return SubmittedPatch(patch=b"", files=())
    if len(patch) > MAX_PATCH_BYTES:
        return None
    run_dir = f"/mergemill-{secrets.token_hex(8)}"
    result = pool.run(
        ["/bin/bash", "-c", READ_SCRIPT, "mergemill", run_dir, workdir, f"{run_dir}/apply_patch.py"],
        files={f"{run_dir}/patch": patch, f"{run_dir}/apply_patch.py": load_patch_program()},
        collect=[f"{run_dir}/read/raw", f"{run_dir}/read/patch"],
        last=True,
    )
    if result.exit_code not in (0, PATCH_FAILED_EXIT) and not result.killed_by:
        raise Transient(f"git cannot read a patch in its container: {result.output.strip()[-200:]}")
    collected = {path.rpartition("/")[2]: content for path, content in result.files.items()}
    if result.exit_code or collected.keys() != {"raw", "patch"}:  # the patch is to blame where a limit ended git
        return None
    return SubmittedPatch(patch=collected["patch"], files=tuple(parse_raw_diff(collected["raw"])))


def find_violation(files: Iterable[TouchedFile]) -> str | None:
    """Return why a patch is not a test patch, by paths and modes alone; None when it meets all rules."""
    return load_path_rules().find_violation(files)


@cache
def load_path_rules(language: str = "") -> TestPathRules:
    """Return the rules for tests of a language; without such rules there are no `test_files`."""
    return TestPathRules(
        tests="|".join(list_test_patterns()),
        config="|".join(list_runner_patterns() + list_config_patterns()),
        shadowing="|".join(SHADOWING_PATTERNS),
        test_files=get_language(language).test_file_pattern if language else r"(?!)",
        suffixes=tuple(sorted(languages_by_suffix())),
    )
