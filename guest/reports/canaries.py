"""Canaries in a report: tests of unpredictable names, of which one must pass and the other must fail.

Both `mergemill grade` and the graders in bundles use this module: Python 3.6 or later, with the standard library only.
"""

import re
from typing import Dict, List, Mapping, Optional

_WORD = re.compile("[0-9a-f]{32}")
"""The digits that a canary and its file have in their names."""
NO_CANARIES, RIGHT, WRONG, MISSING = "none", "right", "wrong", "missing"


def parse_canary_list(content: bytes) -> Dict[str, str]:
    """Return file -> required status of its canary. `content`: lines `pass FILE` and `fail FILE`."""
    lines = (line.partition(" ") for line in content.decode("utf-8", "surrogateescape").split("\n") if line)
    return {file: "passed" if word == "pass" else "failed" for word, _, file in lines}


def list_canary_statuses(statuses: Mapping[str, str], file: str) -> List[str]:
    """Return the statuses of the canary in a file; several where the runner repeats every test.

    A canary has the 32 digits of its file in its name. Plug-ins may report more for the file, such as the check of a
    linter, which passes in both files; only where no name has the digits does all that is reported for the file count.
    """
    tests = {test: status for test, status in statuses.items() if test.partition("::")[0] == file}
    word = _WORD.search(file.rpartition("/")[2])
    named = [status for test, status in tests.items() if word and word.group() in test.partition("::")[2]]
    return named or list(tests.values())


def judge_canaries(statuses: Mapping[str, str], required: Mapping[str, str]) -> str:
    """Return the status of the canaries in a report.

    `right`, `wrong` (a canary has an impossible status), `missing`, or `none` where there are none.

    Args:
        statuses: test id -> status; empty for a run without a report.
        required: file -> status of its canary if the runner is not manipulated.
    """
    if not required:
        return NO_CANARIES
    reported = {file: list_canary_statuses(statuses, file) for file in required}
    if any(status != required[file] for file in required for status in reported[file]):
        return WRONG
    return RIGHT if all(reported.values()) else MISSING


def has_forged_canary(statuses: Mapping[str, str], required: Mapping[str, str]) -> bool:
    """Return whether the canary that must fail has passed, which an unmanipulated runner never reports."""
    failing = [file for file, status in required.items() if status == "failed"]
    return any("passed" in list_canary_statuses(statuses, file) for file in failing)


def find_tampering(canary_status: str, *, has_passes: bool) -> Optional[str]:
    """Return how a submission has changed the results of canaries; None if it has not.

    Args:
        canary_status: what `judge_canaries` returned.
        has_passes: whether any other test is reported as passed. Where none is, the runner itself may be broken.
    """
    if canary_status == WRONG:
        return "canary: a test that cannot pass passed, or one that cannot fail failed"
    if canary_status == MISSING and has_passes:
        return "canary: tests that were run are missing from the report"
    return None
