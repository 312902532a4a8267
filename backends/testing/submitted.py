"""What a patch of tests touches: read by git itself in the task's own box, and held against the rules for tests.

Test-writing lives by two promises: the patch adds and changes tests and what lies beside them, and nothing else. Which
files the paths' rules know as tests is asked first; a new file elsewhere counts when the framework, left to itself,
collects tests from it (`backends.testing.written`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from backends.sandbox.base import Series
from backends.testing.script import SHADOWING_PATTERNS
from languages.paths import is_runner_config, is_test_file, is_test_path
from languages.registry import language_of_file
from mergemill.errors import Transient

MAX_BYTES = 8 * 1024 * 1024
"""A patch of tests larger than this is not read."""
ABSENT = "000000"
"""Git's mode of a file that is not there."""
REGULAR = ("100644", "100755")

# The index alone is changed. The second attempt forgives what `backends.testing.run` forgives a submission.
_READ = """
box="$1" && chmod 711 "$box" && cd "$2" && mkdir "$box/read" || exit 97
run() { git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.quotepath=true "$@"; }
run reset -q || exit 97
run apply --cached --whitespace=nowarn "$box/patch" ||
run apply --cached --whitespace=nowarn --recount --ignore-whitespace -C1 "$box/patch" || exit 96
options=(--cached --no-renames --no-ext-diff --no-textconv --full-index)
run diff "${options[@]}" --raw -z HEAD > "$box/read/raw" &&
run diff "${options[@]}" --binary --src-prefix=a/ --dst-prefix=b/ --unified=3 HEAD > "$box/read/patch" || exit 97
"""
_UNAPPLIED = 96
_SHADOWING = re.compile("|".join(SHADOWING_PATTERNS))


@dataclass(frozen=True, kw_only=True)
class Touched:
    """A file that a patch adds, changes or deletes; a renamed one is two. Modes are git's, `000000` for none."""

    path: str
    before: str
    after: str

    @property
    def is_new(self) -> bool:
        """Whether it was not there."""
        return self.before == ABSENT

    @property
    def is_gone(self) -> bool:
        """Whether it is not there any more."""
        return self.after == ABSENT


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A patch as git writes it anew, and what it touches, by path."""

    patch: bytes
    files: tuple[Touched, ...]

    def existing(self, language: str) -> list[str]:
        """Test files that are there before, sorted."""
        return [file.path for file in self.files if not file.is_new and is_test_file(file.path, language)]

    def written(self, language: str) -> list[str]:
        """Files that are there afterwards and in which a framework would look for tests, sorted.

        Those that no rule knows as tests are among them: whether they are, the framework says.
        """
        present = [file.path for file in self.files if not file.is_gone]
        return [path for path in present if is_test_file(path, language) or path in self.unknown]

    @property
    def unknown(self) -> frozenset[str]:
        """New program files that are tests only if the framework collects tests from them by itself."""
        return frozenset(file.path for file in self.files if _may_be_a_test(file))


def read_submission(boxes: Series, workdir: str, patch: bytes) -> Submitted | None:
    """What a patch touches of the tree in the box; None when it does not apply. The last run of these boxes.

    Raises:
        Transient: the engine failed, or git in the box.
    """
    if not patch.strip():
        return Submitted(patch=b"", files=())
    if len(patch) > MAX_BYTES:
        return None
    box = f"/mergemill-{secrets.token_hex(8)}"
    ran = boxes.run(
        ["/bin/bash", "-c", _READ, "mergemill", box, workdir], files={f"{box}/patch": patch},
        collect=[f"{box}/read/raw", f"{box}/read/patch"], last=True,
    )  # fmt: skip
    if ran.exit_code == _UNAPPLIED and not ran.killed_by:
        return None
    left = {path.rpartition("/")[2]: content for path, content in ran.files.items()}
    if ran.exit_code or left.keys() != {"raw", "patch"}:
        raise Transient(f"a patch cannot be read in its box: {ran.output.strip()[-200:]}")
    return Submitted(patch=left["patch"], files=tuple(_touched(left["raw"])))


def fault_of(files: Iterable[Touched]) -> str | None:
    """Why a patch is no patch of tests, by paths and modes alone; None when nothing speaks against it."""
    rules = (_is_a_link, _configures_the_runner, _stands_in_for_another, _is_no_test)
    files = list(files)
    if not files:
        return "the patch is empty"
    return next((detail for file in files for rule in rules if (detail := rule(file))), None)


# ------------------------------------------------------------------------------------------------ rules of a file


def _is_a_link(file: Touched) -> str | None:
    regular = file.is_gone or file.after in REGULAR
    return None if regular else f"{file.path} is no regular file"


def _configures_the_runner(file: Touched) -> str | None:
    return f"{file.path} configures the test runner" if is_runner_config(file.path) else None


def _stands_in_for_another(file: Touched) -> str | None:
    return f"{file.path} would stand in for a module of the runner" if _SHADOWING.search(file.path) else None


def _is_no_test(file: Touched) -> str | None:
    return None if is_test_path(file.path) or _may_be_a_test(file) else f"{file.path} is no test"


def _may_be_a_test(file: Touched) -> bool:
    """Whether the framework is to be asked: a new program file where no rule looks for tests."""
    return file.is_new and not is_test_path(file.path) and bool(language_of_file(file.path))


def _touched(raw: bytes) -> Iterable[Touched]:
    """The rows of `git diff --raw -z`: `:100644 000000 OLD NEW D` and the path."""
    words: Sequence[bytes] = raw.split(b"\0")[:-1]
    for head, path in zip(words[::2], words[1::2], strict=True):
        before, after = head.decode().lstrip(":").split()[:2]
        yield Touched(path=path.decode(errors="surrogateescape"), before=before, after=after)
