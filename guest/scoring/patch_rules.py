"""Rules that a submitted patch of tests must meet, by the paths and modes of the files that it touches.

A submission for a test-writing task may add and change tests and the files beside them, and nothing else. The path
rules decide first. A new file that they do not recognise counts as a test when the framework collects tests from it
without being given its path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import splitext

MAX_PATCH_BYTES = 8 * 1024 * 1024
"""Largest test patch that is read."""

# Changes the index only.
READ_SCRIPT = """
run_dir="$1" && chmod 711 "$run_dir" && cd "$2" && mkdir "$run_dir/read" || exit 97
run() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.quotepath=true "$@"; }
run reset -q || exit 97
python3 -I -S -B "$3" --cached --record "$run_dir/read" "$run_dir/patch" || exit 96
options=(--cached --no-renames --no-ext-diff --no-textconv --full-index)
run diff "${options[@]}" --raw -z HEAD > "$run_dir/read/raw" &&
run diff "${options[@]}" --binary --src-prefix=a/ --dst-prefix=b/ --unified=3 HEAD > "$run_dir/read/patch" || exit 96
"""
"""Bash with the arguments RUN_DIR, WORKDIR and PROGRAM, the path of `apply_patch.py`: applies RUN_DIR/patch to HEAD in
the index, and writes the files that it touches to RUN_DIR/read/raw and the patch as git rewrites it to
RUN_DIR/read/patch."""
PATCH_FAILED_EXIT = 96
"""Exit code of READ_SCRIPT for a patch that does not apply, or that git cannot write again."""
PATCH_FAILED_MESSAGE = "the test patch does not apply"
"""Message of the evaluation script where its test patch does not apply to the tree."""
ABSENT_MODE = "000000"
"""Git's mode of an absent file."""
REGULAR_MODES = ("100644", "100755")


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class TestPathRules:
    """Patterns that decide the kind of a file, as regular expressions.

    `tests`: tests, fixtures and snapshots; `config`: configuration of test runners; `shadowing`: modules that would
    shadow a runner; `test_files`: files from which the task's framework collects tests. `suffixes`: of program files.
    """

    __test__ = False  # not a test class, whatever pytest thinks of the name

    tests: str
    config: str
    shadowing: str
    test_files: str
    suffixes: tuple[str, ...]

    def find_violation(self, files: Iterable[TouchedFile]) -> str | None:
        """Return why a patch is not a test patch, by paths and modes alone; None when it meets all rules."""
        files = list(files)
        if not files:
            return "the patch is empty"
        return next((detail for file in files for detail in self._iterate_violations(file)), None)

    def list_existing_tests(self, files: Iterable[TouchedFile]) -> list[str]:
        """Return the touched test files that existed before the patch."""
        return [file.path for file in files if not file.is_new and re.search(self.test_files, file.path)]

    def list_possible_tests(self, files: Iterable[TouchedFile]) -> list[str]:
        """Return the remaining files in which a framework may find tests, unrecognised files among them."""
        return [
            file.path
            for file in files
            if not file.is_deleted and (re.search(self.test_files, file.path) or self.is_unrecognized(file))
        ]

    def is_unrecognized(self, file: TouchedFile) -> bool:
        """Return whether the framework must decide: a new program file where no rule expects tests."""
        return file.is_new and not re.search(self.tests, file.path) and splitext(file.path)[1].lower() in self.suffixes

    def _iterate_violations(self, file: TouchedFile) -> Iterator[str]:
        if not file.path.isprintable():  # a list of files has one path a line
            yield f"{file.path!a} has characters that cannot be printed"
        if not file.is_deleted and file.mode_after not in REGULAR_MODES:
            yield f"{file.path} is no regular file"
        if re.search(self.config, file.path):
            yield f"{file.path} configures the test runner"
        if re.search(self.shadowing, file.path):
            yield f"{file.path} would shadow a module of the runner"
        if not re.search(self.tests, file.path) and not self.is_unrecognized(file):
            yield f"{file.path} is no test"


def parse_raw_diff(raw: bytes) -> Iterator[TouchedFile]:
    """Yield the rows of `git diff --raw -z`: `:100644 000000 OLD NEW D` and the path."""
    words = raw.split(b"\0")[:-1]
    for head, path in zip(words[::2], words[1::2]):
        before, after = head.decode().lstrip(":").split()[:2]
        yield TouchedFile(path.decode(errors="surrogateescape"), before, after)
