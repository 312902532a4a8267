"""What no edit may do: leave out tests, replace the runner, make failures look like success.

These refusals save attempts; they are not what keeps environments true. That is acceptance: reports that only the
runner writes, canaries among the tests, the tree as it is at the base commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from languages.draft import Draft
from languages.registry import language
from languages.services import PACKAGES


class RefusedEditError(ValueError):
    """An edit that is not made. The text says why, for people and models."""


LEAVES_OUT = (
    r"^-(k|m|t|g|f|i|e|E|R|L|LE|x|b)$",
    r"^--(deselect|ignore|ignore-glob|exclude|skip|filter|grep|fgrep|invert|tests?)\b",
    r"^--(exitfirst|maxfail|bail|fail-?fast|stop\b|stop-on-\w+|stepwise|sw|lf|last-failed|ff|nf|collect-only|co|list)\b",
    r"^--(dry-run|no-run|pass-?with-?no-?tests|shard|partition|only-?changed|changed(since)?|related)\b",
    r"^--test(name|path|-name|-path)[\w-]*", r"^--(exclude-?group|group|tag|example|exact|ignored|forked-skip)\b",
    r"^-?-(run|skip|short|failfast|list)(=|$)", r"^-D(skip|maven\.test|test=|it\.test|surefire\.(skip|exclude)|fail)",
    r"^-u$", r"^--(update|snapshot-update|update-?snapshots?)\b", r"^-k.", r"^-m.",
)  # fmt: skip
"""Options, of any runner, that deselect, ignore or stop, or write what is expected from what is seen."""
REPLACES = (
    r"^-p(?!$|no:)", r"^--(pyargs|rootdir|confcutdir|config(-file)?|noconftest|junit|junitxml|report\w*|setup\w*)",
    r"^-c$",
    r"^--(plugin|require|import(?!-mode)|loader|init-script|experimental-loader|test-reporter[\w-]*|resolver)\b",
    r"(^|=)(python_(files|classes|functions)|testpaths|norecursedirs|collect_ignore|junit\w*|addopts)=",
    r"^-r$", r"^--(output|out|log)[\w-]*=", r"[;&|`$<>\n]",
)  # fmt: skip
"""Options that put something else in the place of the project's tests, the runner or its report."""

_NAMES_TESTS = re.compile(
    r"(\brm\b|\bunlink\b|\bmv\b|\bsed\s+(-\S+\s+)*-i|\btruncate\b|\bgit\s+(rm|checkout|apply|reset|stash|am)\b|\bpatch\b|>>?)[^;&|\n]*"
    r"(tests?[/_]|\btests?(?=[/_\s'\");]|$)|_tests?\b|_spec\b|\.test\.|\.spec\.|conftest|\bspecs?/|__tests__)"
)
_NEVER_FAILS = re.compile(
    r"\|\|\s*(true|:|exit\s+0|echo)\b|;\s*(true|exit\s+0)\s*$|^\s*(true|exit\s+0|:)\s*$|set\s+\+e"
)
_RUNNERS = re.compile(
    r"(site-packages|dist-packages|node_modules)\S*/(_?pytest|pluggy|unittest|jest\S*|mocha|vitest)|(site|user)customize|\.pth\b"
    r"|junit\S*\.xml|\bconftest\.py|MERGEMILL|/opt/venv/bin/(py\.?test|python)\b\s*<<|>\s*/(opt/venv|usr|bin|usr/local)\S*bin/"
)
_GLOBAL = re.compile(r"/etc/(passwd|shadow|sudoers)|setpriv|chmod\s+\S*s\b|docker\.sock|/proc/1/|\bmknod\b|\bmount\b")

NO_VARIABLES = re.compile(
    r"^(PATH|HOME|USER|LOGNAME|SHELL|IFS|ENV|BASH_ENV|BASH_FUNC.*|LD_.*|PYTEST_.*|PYTHON(HOME|STARTUP|INSPECT|HASHSEED|USERBASE)"
    r"|MERGEMILL_.*|GIT_(DIR|WORK_TREE|EXEC_PATH)|PERL5OPT|PROMPT_COMMAND|RUSTC(_WRAPPER)?|CARGO|NODE_TEST_CONTEXT|JEST_.*)$"
)
"""Variables by which the runner or what starts it would be another."""
_LOADS = re.compile(
    r"--require|-r\s*\S|--import|--loader|-javaagent|-Xbootclasspath|--init|-toolexec|--experimental-loader"
)
"""In values of NODE_OPTIONS, RUBYOPT, JAVA_TOOL_OPTIONS, GOFLAGS: code that is loaded before any other."""


def of(edit: Any, draft: Draft) -> str:
    """Why an edit of `builders.repair.edits` is refused for a draft; empty when it is not."""
    check = _CHECKS.get(edit.edit)
    return check(edit, draft) if check else ""


def _requirement(edit: Any, draft: Draft) -> str:
    text = edit.requirement
    if re.search(r"[;&|`$\n]\s*(?!python_|sys_|platform_|os_|implementation_|extra)", text):
        return f"{text!r} is no requirement"
    if draft.language != "python":
        return ""
    try:
        parsed = Requirement(text)
    except InvalidRequirement as error:
        return f"{text!r} is no requirement: {str(error).splitlines()[0]}"
    return f"{text!r}: packages come from the index, not from an address" if parsed.url else ""


def _version(edit: Any, draft: Draft) -> str:
    known = [release.version for release in language(draft.language).RELEASES]
    return "" if edit.version in known else f"{draft.language} {edit.version} is not known; known: {', '.join(known)}"


def _exclude_newer(edit: Any, draft: Draft) -> str:
    latest = draft.day.replace(year=draft.day.year + 1, day=min(draft.day.day, 28))
    return f"packages of {edit.day} are of the future: the change is of {draft.day}" if edit.day > latest else ""


def _env(edit: Any, draft: Draft) -> str:
    del draft
    if NO_VARIABLES.match(edit.name):
        return f"{edit.name} belongs to what starts the tests"
    if edit.name.endswith(("OPTIONS", "OPT", "FLAGS")) and _LOADS.search(edit.value):
        return f"{edit.name} would load code before the tests"
    return "a value is one line" if "\n" in edit.value else ""


def _switch(edit: Any, draft: Draft) -> str:
    known = language(draft.language).SWITCHES
    return "" if edit.name in known else f"{edit.name} is no switch of {draft.language}; known: {', '.join(known)}"


def _step(edit: Any, draft: Draft) -> str:
    del draft
    command = edit.command
    if match := _NEVER_FAILS.search(command):
        return f"a step must be able to fail: {match.group().strip()!r}"
    for pattern, why in (
        (_NAMES_TESTS, "tests are not for a step to change"),
        (_RUNNERS, "the runner and its reports are not for a step to change"),
        (_GLOBAL, "that is not for a step to touch"),
    ):
        if match := pattern.search(command):
            return f"{why}: {match.group().strip()!r}"
    return ""


def _paths(edit: Any, draft: Draft) -> str:
    del draft
    wrong = [path for path in edit.paths if path.startswith(("/", "-")) or ".." in path.split("/") or "\n" in path]
    return f"{wrong[0]!r} is no path in the tree" if wrong else ""


def _options(edit: Any, draft: Draft) -> str:
    argv = draft.test.argv
    for word in edit.remove:
        at = argv.index(word) if word in argv else -1
        if at == 0 or (at > 0 and not word.startswith("-") and not argv[at - 1].startswith("-")):
            return f"{word!r} belongs to the program, not to its options"
    for before, word in zip(("", *edit.add), edit.add, strict=False):
        if any(re.search(pattern, word) for pattern in LEAVES_OUT):
            return f"{word!r} leaves out tests, stops early or rewrites what is expected"
        if any(re.search(pattern, word) for pattern in REPLACES):
            return f"{word!r} would put something else in the place of the tests or their report"
        if before == "-p" and not word.startswith("no:"):
            return f"-p {word} would load code before the tests"
        if not word.startswith("-") and (not before.startswith("-") or "=" in before):
            return f"{word!r} is no option; paths are set by set-test-paths"
    return ""


def _folder(edit: Any, draft: Draft) -> str:
    del draft
    parts = edit.folder.split("/")
    return f"{edit.folder!r} is no folder of the tree" if edit.folder.startswith("/") or ".." in parts else ""


def _service(edit: Any, draft: Draft) -> str:
    del draft
    return "" if edit.name in PACKAGES else f"{edit.name} cannot be started; known: {', '.join(PACKAGES)}"


def _fallback(edit: Any, draft: Draft) -> str:
    known = [one.__name__ for one in language(draft.language).FALLBACKS]
    return "" if edit.name in known else f"{edit.name} is no fallback of {draft.language}; known: {', '.join(known)}"


_CHECKS: Mapping[str, Callable[[Any, Draft], str]] = {
    "add-dependency": _requirement,
    "pin-dependency": _requirement,
    "set-language-version": _version,
    "set-exclude-newer": _exclude_newer,
    "set-env": _env,
    "set-switch": _switch,
    "clear-switch": _switch,
    "add-dependency-step": _step,
    "add-source-step": _step,
    "set-test-paths": _paths,
    "set-test-options": _options,
    "set-test-folder": _folder,
    "add-service": _service,
    "fallback": _fallback,
}


def leaves_out(before: Sequence[str], after: Sequence[str], own: Sequence[str], share: float) -> str:
    """Why edits are refused after which too few test files would run; empty when enough would.

    Args:
        before: files that the first draft's plan runs.
        after: those of the edited one.
        own: test files of the change.
        share: of `before` that must stay, 0..1.
    """
    lost = set(before) - set(after)
    if missing := sorted(set(own) & lost):
        return f"the change's own tests would not run: {missing[0]}"
    if len(lost) > (1 - share) * len(before):
        return f"{len(lost)} of {len(before)} test files would not run"
    return ""
