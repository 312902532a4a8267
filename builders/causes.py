"""Causes for which tests fail that no edit of the plan removed: the things that they need around them and do not find.

The messages are those of the standard libraries of Python, Node, Go, Ruby and Java, and of common programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from builders.acceptance import BuildRejection, Reason
from evaluation.reports.outcomes import EvaluationReport, OutcomeStatus

CAUSES: dict[Reason, re.Pattern[str]] = {
    Reason.NEEDS_NETWORK: re.compile(
        r"[Nn]ame resolution|[Nn]etwork is unreachable|getaddrinfo (ENOTFOUND|EAI_AGAIN)|NameResolutionError"
        r"|no such host|Name or service not known|Could not resolve host|UnknownHostException|ENETUNREACH"
        r"|Failed to open TCP connection|nodename nor servname"
    ),
    Reason.NEEDS_TERMINAL: re.compile(
        r"/dev/tty\b|[Ii]nappropriate ioctl for device|\bENOTTY\b|not a (tty|TTY|terminal)\b|setupterm: could not find"
        r"|(must|requires?|needs?) .{0,30}\b(tty|terminal)\b|No value for \$TERM|TERM environment variable"
    ),
    Reason.NEEDS_DISPLAY: re.compile(
        r"couldn't connect to display|no display name|[Cc]an(no|')t open display|Unable to init server|Missing X server"
        r"|HeadlessException|X11 DISPLAY variable|could not connect to display"
    ),
    Reason.NEEDS_LOCALE: re.compile(
        r"unsupported locale setting|_S_create_c_locale name not valid|[Uu]nknown locale|cannot change locale"
    ),
    Reason.NEEDS_TIME_ZONE: re.compile(
        r"No time zone found with key|ZoneInfoNotFoundError|[Uu]nknown time ?zone|Invalid time zone specified"
        r"|ZoneRulesException|TZInfo::DataSourceNotFound|InvalidTimezoneIdentifier"
    ),
    Reason.NEEDS_HOME: re.compile(
        r"(No such file or directory|ENOENT|no such file or directory|NoSuchFileException)[^\n]{0,60}/home/mergemill/"
        r"|/home/mergemill/[^\n]{0,80}(no such file or directory|No such file or directory)"
        r"|\$?HOME\b.{0,20}\b(is )?(not set|not defined|unset)|determine home directory"
    ),
    Reason.NEEDS_ROOT: re.compile(
        r"[Oo]peration not permitted|\bEPERM\b|must be (run as )?root|requires? root|need to be root"
        r"|[Pp]ermission denied[^\n]{0,40}/(root|etc|var|usr|opt|run|sys|proc)/|listen E?ACCES"
        r"|where 1000 = \S*gete?uid"
        r"|\bEACCES\b[^\n]{0,60}'/(root|etc|var|usr|opt|run)/"
    ),
}
"""Reason -> messages of tests that fail for it."""
MIN_SHARE = 0.5
"""Share of a rejected build's failures that must have the cause; all of a change's own tests must have it."""


def name_cause(rejection: BuildRejection) -> BuildRejection:
    """Return the rejection with the reason that names the cause of its failures; unchanged without such a cause.

    Only rejections with a report of failing tests have a cause of that kind.
    """
    if rejection.report is None or rejection.reason not in (Reason.MOSTLY_FAILING, Reason.FEW_COLLECTED):
        return rejection
    return _replace_reason(rejection, list_messages(rejection.report), MIN_SHARE)


def name_gold_cause(rejection: BuildRejection) -> BuildRejection | None:
    """Return the rejection that names the one cause for which all failing tests of the change fail; None without it."""
    if rejection.report is None:
        return None
    named = _replace_reason(rejection, list_messages(rejection.report, rejection.expected_files), 1.0)
    return None if named is rejection else named


def find_gold_cause(report: EvaluationReport | None, files: Sequence[str]) -> Reason | None:
    """Return the reason that names the one cause for which all failing tests of the change fail; None without it."""
    rejection = BuildRejection(
        reason=Reason.GOLD_TESTS_FAIL, detail="", log="", report=report, expected_files=tuple(files)
    )
    named = name_gold_cause(rejection)
    return named.reason if named else None


def list_messages(report: EvaluationReport, files: Sequence[str] = ()) -> list[str]:
    """Return the messages of failing tests and of files that were not collected; `files`: of these alone."""

    def is_selected(name: str) -> bool:
        return not files or name.partition("::")[0] in files

    failed = [
        outcome.message
        for test, outcome in report.outcomes.items()
        if outcome.status in (OutcomeStatus.FAILED, OutcomeStatus.ERROR) and is_selected(test)
    ]
    return failed + [text for path, text in report.uncollected.items() if is_selected(path)]


def _replace_reason(rejection: BuildRejection, messages: Sequence[str], share: float) -> BuildRejection:
    for reason, pattern in CAUSES.items():
        matching = [message for message in messages if pattern.search(message)]
        if matching and len(matching) >= share * len(messages):
            line = next(line for line in matching[0].splitlines() if pattern.search(line)).strip()[:200]
            detail = f"{rejection.detail}; {len(matching)} of {len(messages)} failures have the cause: {line}"
            return replace(rejection, reason=reason, detail=detail)
    return rejection
