"""Each check on what passes, what fails, and where its occasion does not come up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from core.errors import InputError
from evaluation.instructions.changes import ChangedFile
from evaluation.instructions.checks import CHECKS, make_check
from evaluation.instructions.evidence import CheckState
from taskdb.records.instructions import JUDGED
from tests.evaluation.instructions.conversations import Call, bash, decide, make_answers

OLD = b'def greet(name):\n    return "hi " + name\n'
NEW = b'def greet(name):\n    """Greet."""\n    return "hi " + name\n'
CHANGED = ChangedFile("src/a.py", OLD, NEW)
READ, EDIT, TEST, LOOK = bash("cat src/a.py"), bash("sed -i s/1/2/ src/a.py"), bash("pytest -q"), bash("ls")
NOTES: Call = ("project_notes", {"topic": "x", "reason": "y"})
PYTEST = {"commands": ["pytest"]}
IN_ORDER = {"commands": ["ls", "pytest"]}
OWN_SKILL: Call = ("skill", {"name": "own"})
Answers = Sequence[str | Sequence[str | Call]]
Case = tuple[str, dict[str, Any], Answers, Answers, Answers]


def change(text: bytes, path: str = "src/a.py", before: bytes | None = OLD) -> list[ChangedFile]:
    return [ChangedFile(path, before, text)]


CONVERSATIONS: list[Case] = [  # check, arguments, conversations that pass, fail and are inactive
    ("search-before-edit", {}, [[LOOK], [EDIT]], [[EDIT], [LOOK]], [[LOOK]]),
    ("plan-before-edit", {"steps": 3}, ["- a\n- b\n- c", [EDIT]], ["- a\n- b", [EDIT]], ["- a"]),
    ("command-before-first-edit", PYTEST, [[TEST], [EDIT]], [[EDIT], [TEST]], [[TEST]]),
    ("command-after-last-edit", PYTEST, [[EDIT], [TEST]], [[EDIT], [TEST], [EDIT]], [[TEST]]),
    ("command-run", PYTEST, [[TEST], [EDIT]], [[EDIT]], [[LOOK]]),
    ("commands-in-order", IN_ORDER, [[EDIT], [LOOK], [TEST]], [[EDIT], [TEST], [LOOK]], [[LOOK]]),
    ("commands-in-order", IN_ORDER, [[LOOK], [EDIT], [TEST]], [[EDIT], [TEST], [LOOK]], [[LOOK]]),
    (
        "commands-in-order",
        {**IN_ORDER, "after_last_edit": True},
        [[TEST], [EDIT], [LOOK], [READ], [TEST]],
        [[LOOK], [EDIT], [TEST]],
        [[LOOK]],
    ),
    ("no-reads-by", {"programs": ["cat"]}, [[bash("head src/a.py")]], [[READ]], [[LOOK]]),
    ("no-reads-by", {"programs": ["cat"]}, [[bash("cat > b.py <<'E'\nE"), bash("head b.py")]], [[READ]], [[TEST]]),
    ("no-writes-by", {"programs": ["sed"]}, [[("Write", {"file_path": "b.py"})]], [[EDIT]], [[READ]]),
    ("single-commands", {}, [[bash("ls | wc -l")]], [[bash("cd src && ls")]], ["Hello."]),
    ("wrapped-command", {**PYTEST, "wrapper": "timeout"}, [[bash("timeout 9 pytest")]], [[TEST]], [[LOOK]]),
    ("no-background", {}, [[TEST]], [[bash("nohup pytest")]], ["Hello."]),
    ("absolute-paths", {}, [[bash("cat /testbed/src/a.py")]], [[READ]], [[TEST]]),
    ("absolute-paths", {}, [[("Read", {"file_path": "/testbed/a"})]], [[("Read", {"file_path": "a"})]], [[LOOK]]),
    ("calls-at-most", {"number": 1}, [[LOOK]], [[LOOK], [TEST]], ["Hello."]),
    ("never-writes", {"globs": ["*CLAUDE.md"]}, [[EDIT]], [[bash("echo x >> /root/.claude/CLAUDE.md")]], []),
    ("never-text", {"patterns": ["(?i)sorry"]}, ["Done."], ["Sorry."], [[LOOK]]),
    ("never-text", {"patterns": ["x9"], "where": "everything"}, [[LOOK]], [[bash("ls x9")]], []),
    ("calls-explained", {}, [["I look.", LOOK]], [["I look.", LOOK], [TEST]], ["Hello."]),
    ("answer-begins", {"prefix": "Summary:"}, ["**Summary:** done"], ["Done. Summary: x"], []),
    ("answer-ends", {"line": "The end."}, ["Done.\n\nThe end."], ["The end.\nBye."], []),
    ("answer-words", {"at_most": 3}, ["one two three"], ["one two three four"], []),
    ("answer-mentions", {"patterns": ["\\bAda\\b"]}, ["For Ada."], ["For Adam."], []),
    ("answer-items", {"at_least": 2, "at_most": 3}, ["- a\n- b"], ["- a"], []),
    ("answer-json", {"keys": ["tests"]}, ['```json\n{"tests": 1}\n```'], ['It is {"tests": 1}'], []),
    (
        "skill-read",
        {"skill": "own"},
        [[("skill", {"name": "own"})], [EDIT]],
        [[EDIT], [("skill", {"name": "own"})]],
        [],
    ),
    ("tool-called", {"tool": "project_notes"}, [[NOTES], [EDIT]], [[EDIT], [NOTES]], [[NOTES]]),
    (
        "tool-argument-given",
        {"tool": "project_notes", "argument": "reason"},
        [[NOTES]],
        [[("project_notes", {"topic": "x", "reason": " "})]],
        [[LOOK]],
    ),
    ("tool-calls-at-most", {"tool": "project_notes", "number": 1}, [[NOTES]], [[NOTES], [NOTES]], [[LOOK]]),
    ("tool-never", {"tool": "project_notes"}, [[LOOK]], [[NOTES]], []),
]
PASSED, FAILED, INACTIVE = CheckState.PASSED, CheckState.FAILED, CheckState.INACTIVE
FUNCTION = b"\n\ndef added(x):\n    return x\n"
PRINT = {"patterns": [r"\bprint\("], "code_only": True}
SEPARATED = "# Lines \u2028 of \x0c one \x85 comment, print(0)\n".encode()
DOCUMENTED = b"# print(1)\nx = 'print(2)'  # print(3)\n"
FileCase = tuple[str, dict[str, Any], list[ChangedFile], list[ChangedFile], list[ChangedFile]]
FILES: list[FileCase] = [
    ("files-untouched", {"globs": ["*.md", "docs/*"]}, [CHANGED], change(b"x", "docs/a/b.txt"), []),
    ("new-files-only", {"globs": ["src/*"]}, change(b"x", "src/b.py", None), change(b"x", "b.py", None), []),
    ("new-files-only", {}, [CHANGED], change(b"x", "b.py", None), []),
    ("new-files-never", {"globs": ["tmp*"]}, change(b"x", "tmp.py"), change(b"x", "src/tmp1.py", None), []),
    ("file-gains-line", {"path": "N.md", "pattern": "^- "}, change(b"- x\n", "N.md", b""), [CHANGED], []),
    ("files-at-most", {"number": 1}, [CHANGED], [CHANGED, *change(b"x", "b.py")], []),
    ("lines-at-most", {"number": 1}, [CHANGED], change(b"x\ny\n"), []),
    ("last-line-ends", {}, [CHANGED], change(b"x\n\n"), []),
    ("added-lines-never", {"patterns": ["TODO"]}, [CHANGED], change(OLD + b"# TODO\n"), change(b"TODO", "a.txt")),
    ("added-lines-never", {"patterns": ["TODO"]}, change(NEW, before=b"# TODO\n"), change(b"# TODO\n"), []),
    ("added-lines-never", PRINT, change(OLD + DOCUMENTED), change(OLD + DOCUMENTED + b"print(1)\n"), []),
    ("added-lines-never", PRINT, change(SEPARATED), change(SEPARATED + b"print(1)\n"), []),
    ("added-lines-never", {**PRINT, "in_source": False}, change(b"x\n", "a.txt"), change(b"print(1)\n", "a.txt"), []),
    ("added-lines-at-most", {"characters": 30}, [CHANGED], change(OLD + b"#" * 31), change(b"#" * 31, "a.txt")),
    (
        "new-files-begin",
        {"pattern": "SPDX"},
        change(b"#\n# SPDX\n", before=None),
        change(b"#\n", before=None),
        [CHANGED],
    ),
    ("changed-sources-gain", {"pattern": "reviewed"}, change(OLD + b"# reviewed\n"), [CHANGED], change(b"x", "a.txt")),
    (
        "new-functions-documented",
        {},
        change(OLD + b"\n\n# It adds.\ndef added(x):\n    return x\n"),
        change(OLD + FUNCTION),
        [CHANGED],
    ),
    (
        "new-functions-typed",
        {},
        change(OLD + b"def added(self, x: int, *more: int) -> int:\n    return x\n"),
        change(OLD + FUNCTION),
        [CHANGED],
    ),
    (
        "new-functions-named",
        {"pattern": "[a-z_]+"},
        change(OLD + FUNCTION),
        change(OLD + b"def addIt(x): ...\n"),
        [CHANGED],
    ),
    ("functions-at-most", {"lines": 3}, [CHANGED], change(OLD + b"    # one\n    # two\n    return 1\n"), change(OLD)),
]


@pytest.mark.parametrize("case", CONVERSATIONS, ids=lambda case: case[0])
def test_a_check_of_conversations(case: Case) -> None:
    check, arguments, *conversations = case
    for answers, state in zip(conversations, (PASSED, FAILED, INACTIVE), strict=True):
        if answers or state is INACTIVE:
            result = decide(check, make_answers(*answers), tools=["project_notes"], **arguments)
            assert result.state is state, (state, result)


@pytest.mark.parametrize("case", FILES, ids=lambda case: case[0])
def test_a_check_of_files(
    case: tuple[str, dict[str, Any], list[ChangedFile], list[ChangedFile], list[ChangedFile]],
) -> None:
    check, arguments, *changes = case
    for changed, state in zip(changes, (PASSED, FAILED, INACTIVE), strict=True):
        result = decide(check, make_answers("Done."), changed, **arguments)
        assert result.state is state, (state, result)


def test_answers_name_the_changed_files() -> None:
    assert decide("answer-names-files", make_answers("I changed `a.py`."), [CHANGED]).state is PASSED
    assert decide("answer-names-files", make_answers("I changed it."), [CHANGED]).state is FAILED


def test_every_turn_may_have_to_end_alike() -> None:
    said = [*make_answers("Done.\nBye."), *make_answers("Again.", turn=2, first=1)]
    assert decide("answer-ends", said[:1], line="Bye.").state is PASSED
    result = decide("answer-ends", [*said, *make_answers("Bye.", turn=3, first=2)], line="Bye.", every_turn=True)
    assert (result.state, result.exchange) == (FAILED, 1)
    assert decide("answer-ends", [*said, *make_answers("Bye.", turn=3, first=2)], line="Bye.").state is PASSED


def test_a_turn_that_only_explains_changes_no_file() -> None:
    work = make_answers([EDIT], "Done.")
    assert decide("turn-without-changes", [*work, *make_answers("Since.", turn=2, first=2)], in_turn=2).state is PASSED
    again = make_answers([EDIT], turn=2, first=2)
    result = decide("turn-without-changes", [*work, *again], in_turn=2)
    assert (result.state, result.exchange) == (FAILED, 2)
    assert decide("turn-without-changes", work, in_turn=2).state is INACTIVE


def test_tests_after_each_turn_with_an_edit() -> None:
    work = [*make_answers([EDIT], [TEST]), *make_answers([EDIT], turn=2, first=2)]
    assert decide("command-after-last-edit", work, every_turn=True, **PYTEST).state is FAILED
    tested = [*work, *make_answers([TEST], turn=2, first=3)]
    assert decide("command-after-last-edit", tested, every_turn=True, **PYTEST).state is PASSED


def test_all_checks_are_tried_here() -> None:
    tried = {case[0] for case in (*CONVERSATIONS, *FILES)}
    others = {"answer-names-files", "never-command", "read-before-edit", "turn-without-changes"}  # above, and disguises
    assert tried | others | {JUDGED} == CHECKS.keys()


def test_unknown_checks_and_arguments_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"own.toml: check no-such is unknown"):
        make_check("no-such", {}, "own.toml")
    with pytest.raises(InputError, match=r"own.toml: arguments of never-command: field commands is missing"):
        make_check("never-command", {}, "own.toml")
    with pytest.raises(InputError, match=r"no regular expression"):
        make_check("never-command", {"commands": ["("]}, "own.toml")
