"""Checks that reject edits which leave out tests, replace the runner, or make failures look like success.

These checks save attempts. The correctness of environments rests on acceptance: reports that only the runner writes,
canaries among the tests, and the tree restored to the base commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from languages.draft import PlanDraft
from languages.registry import LANGUAGES, get_language
from languages.services import PACKAGES


class RejectedEditError(ValueError):
    """An edit that is not applied. The text gives the reason, for people and models."""


EXCLUDING_OPTIONS = (
    r"^-(k|m|t|g|f|i|e|E|R|L|LE|x|b)$",
    r"^--(deselect|ignore|ignore-glob|exclude|skip|filter|grep|fgrep|invert|tests?)\b",
    r"^--(exitfirst|maxfail|bail|fail-?fast|stop\b|stop-on-\w+|stepwise|sw|lf|last-failed|ff|nf|collect-only|co|list)\b",
    r"^--(dry-run|no-run|pass-?with-?no-?tests|shard|partition|only-?changed|changed(since)?|related)\b",
    r"^--test(name|path|-name|-path)[\w-]*",
    r"^--(exclude-?group|group|tag|example|exact|ignored|forked-skip)\b",
    r"^-?-(run|skip|short|failfast|list)(=|$)",
    r"^-u$",
    r"^--(update|snapshot-update|update-?snapshots?)\b",
    r"^-k.",
    r"^-m.",
    *(pattern for language in LANGUAGES.values() for pattern in language.excluding_options),
)
"""Options of any runner that deselect, ignore or stop, or that rewrite expected results from actual results."""
REPLACING_OPTIONS = (
    r"^-p(?!$|no:)",
    r"^--(pyargs|rootdir|confcutdir|config(-file)?|noconftest|junit|junitxml|report\w*|setup\w*)",
    r"^-c$",
    r"^--(plugin|require|import(?!-mode)|loader|init-script|experimental-loader|test-reporter[\w-]*|resolver)\b",
    r"^-r$",
    r"^--(output|out|log)[\w-]*=",
    r"[;&|`$<>\n]",
    *(pattern for language in LANGUAGES.values() for pattern in language.replacing_options),
)
"""Options that replace the project's tests, the runner or its report."""

_TEST_CHANGE = re.compile(
    r"(\brm\b|\bunlink\b|\bmv\b|\bsed\s+(-\S+\s+)*-i|\btruncate\b|\bgit\s+(rm|checkout|apply|reset|stash|am)\b|\bpatch\b|>>?)[^;&|\n]*"
    r"(tests?[/_]|\btests?(?=[/_\s'\");]|$)|_tests?\b|_spec\b|\.test\.|\.spec\.|conftest|\bspecs?/|__tests__)"
)
_IGNORED_FAILURE = re.compile(
    r"\|\|\s*(true|:|exit\s+0|echo)\b|;\s*(true|exit\s+0)\s*$|^\s*(true|exit\s+0|:)\s*$|set\s+\+e"
)
_RUNNER_CHANGE = re.compile(
    r"(site-packages|dist-packages|node_modules)\S*/(_?pytest|pluggy|unittest|jest\S*|mocha|vitest)|(site|user)customize|\.pth\b"
    r"|junit\S*\.xml|\bconftest\.py|MERGEMILL|/opt/venv/bin/(py\.?test|python)\b\s*<<|>\s*/(opt/venv|usr|bin|usr/local)\S*bin/"
)
_SYSTEM_CHANGE = re.compile(
    r"/etc/(passwd|shadow|sudoers)|setpriv|chmod\s+\S*s\b|docker\.sock|/proc/1/|\bmknod\b|\bmount\b"
)

_VARIABLES = (
    r"PATH|HOME|USER|LOGNAME|SHELL|IFS|ENV|BASH_ENV|BASH_FUNC.*|LD_.*|MERGEMILL_.*|GIT_(DIR|WORK_TREE|EXEC_PATH)|PROMPT_COMMAND",
    *(pattern for language in LANGUAGES.values() for pattern in language.reserved_variables),
)
RESERVED_VARIABLES = re.compile(rf"^({'|'.join(_VARIABLES)})$")
"""Variables that would replace the runner or the program that starts it."""
_CODE_LOADING = re.compile(
    r"--require|-r\s*\S|--import|--loader|-javaagent|-Xbootclasspath|--init|-toolexec|--experimental-loader"
)
"""Options in NODE_OPTIONS, RUBYOPT, JAVA_TOOL_OPTIONS or GOFLAGS that load code before any other."""


def check_edit(edit: Any, draft: PlanDraft) -> str:
    """Return why an edit of `builders.repair.edits` is rejected for a draft; empty when it is allowed."""
    check = _CHECKS.get(edit.edit)
    return check(edit, draft) if check else ""


def _check_requirement(edit: Any, draft: PlanDraft) -> str:
    text = edit.requirement
    if re.search(r"[;&|`$\n]\s*(?!python_|sys_|platform_|os_|implementation_|extra)", text):
        return f"{text!r} is no requirement"
    return get_language(draft.language).find_requirement_fault(text)


def _check_version(edit: Any, draft: PlanDraft) -> str:
    versions = [release.version for release in get_language(draft.language).releases]
    if edit.version in versions:
        return ""
    return f"{draft.language} {edit.version} is not available; available: {', '.join(versions)}"


def _check_exclude_newer(edit: Any, draft: PlanDraft) -> str:
    # Day 28 exists in every month, and the 29th of February does not exist in the next year.
    latest = draft.day.replace(year=draft.day.year + 1, day=min(draft.day.day, 28))
    return f"{edit.day} is too late: the change was made on {draft.day}" if edit.day > latest else ""


def _check_env(edit: Any, draft: PlanDraft) -> str:
    del draft
    if RESERVED_VARIABLES.match(edit.name):
        return f"{edit.name} is reserved for the program that starts the tests"
    if edit.name.endswith(("OPTIONS", "OPT", "FLAGS")) and _CODE_LOADING.search(edit.value):
        return f"{edit.name} would load code before the tests"
    return "a value must be one line" if "\n" in edit.value else ""


def _check_switch(edit: Any, draft: PlanDraft) -> str:
    names = get_language(draft.language).switches
    return "" if edit.name in names else f"{edit.name} is no switch of {draft.language}; available: {', '.join(names)}"


def _check_step(edit: Any, draft: PlanDraft) -> str:
    del draft
    command = edit.command
    if match := _IGNORED_FAILURE.search(command):
        return f"a step must be able to fail: {match.group().strip()!r}"
    for pattern, reason in (
        (_TEST_CHANGE, "a step must not change tests"),
        (_RUNNER_CHANGE, "a step must not change the runner or its reports"),
        (_SYSTEM_CHANGE, "a step must not change users, rights or mounts"),
    ):
        if match := pattern.search(command):
            return f"{reason}: {match.group().strip()!r}"
    return ""


def _check_paths(edit: Any, draft: PlanDraft) -> str:
    del draft
    invalid = [path for path in edit.paths if path.startswith(("/", "-")) or ".." in path.split("/") or "\n" in path]
    return f"{invalid[0]!r} is no path in the tree" if invalid else ""


def _check_options(edit: Any, draft: PlanDraft) -> str:
    argv = draft.test.argv
    for word in edit.remove:
        at = argv.index(word) if word in argv else -1
        # Words such as `test` in `go test` start the runner; without them no test would run.
        if at == 0 or (at > 0 and not word.startswith("-") and not argv[at - 1].startswith("-")):
            return f"{word!r} belongs to the program, not to its options"
    for before, word in zip(("", *edit.add), edit.add, strict=False):
        if any(re.search(pattern, word) for pattern in EXCLUDING_OPTIONS):
            return f"{word!r} leaves out tests, stops early or rewrites expected results"
        if any(re.search(pattern, word) for pattern in REPLACING_OPTIONS):
            return f"{word!r} would replace the tests or their report"
        # `-p` and its plugin may be separate words, so the pattern for a single word does not match them.
        if before == "-p" and not word.startswith("no:"):
            return f"-p {word} would load code before the tests"
        if not word.startswith("-") and (not before.startswith("-") or "=" in before):
            return f"{word!r} is no option; paths are set by set-test-paths"
    return ""


def _check_folder(edit: Any, draft: PlanDraft) -> str:
    del draft
    parts = edit.folder.split("/")
    return f"{edit.folder!r} is no folder of the tree" if edit.folder.startswith("/") or ".." in parts else ""


def _check_service(edit: Any, draft: PlanDraft) -> str:
    del draft
    return "" if edit.name in PACKAGES else f"{edit.name} is no available service; available: {', '.join(PACKAGES)}"


def _check_fallback(edit: Any, draft: PlanDraft) -> str:
    names = [fallback.__name__ for fallback in get_language(draft.language).fallbacks]
    return (
        "" if edit.name in names else f"{edit.name} is no fallback of {draft.language}; available: {', '.join(names)}"
    )


_CHECKS: Mapping[str, Callable[[Any, PlanDraft], str]] = {
    "add-dependency": _check_requirement,
    "pin-dependency": _check_requirement,
    "set-language-version": _check_version,
    "set-exclude-newer": _check_exclude_newer,
    "set-env": _check_env,
    "set-switch": _check_switch,
    "clear-switch": _check_switch,
    "add-dependency-step": _check_step,
    "add-source-step": _check_step,
    "set-test-paths": _check_paths,
    "set-test-options": _check_options,
    "set-test-folder": _check_folder,
    "add-service": _check_service,
    "fallback": _check_fallback,
}


def check_kept_tests(before: Sequence[str], after: Sequence[str], own: Sequence[str], share: float) -> str:
    """Return why edits are rejected because too few test files would run; empty when enough remain.

    Args:
        before: files that the first draft's plan runs.
        after: files that the edited plan runs.
        own: the change's own test files.
        share: share of `before` that must remain, 0 to 1.
    """
    lost = set(before) - set(after)
    if missing := sorted(set(own) & lost):
        return f"the change's own tests would not run: {missing[0]}"
    if len(lost) > (1 - share) * len(before):
        return f"{len(lost)} of {len(before)} test files would not run"
    return ""
