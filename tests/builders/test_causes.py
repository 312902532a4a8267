"""The reason of a rejected build names what the tests lack, where most of their failures say so."""

from __future__ import annotations

import pytest

from builders.acceptance import BuildRejection, Reason
from builders.causes import name_cause, name_gold_cause
from evaluation.reports.outcomes import EvaluationReport, Outcome, OutcomeStatus

FAILED, PASSED = OutcomeStatus.FAILED, OutcomeStatus.PASSED
NETWORK = "URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"


def make_rejection(reason: Reason, messages: list[str], *, passed: int = 0) -> BuildRejection:
    outcomes = {f"tests/test_a.py::{at}": Outcome(status=FAILED, message=text) for at, text in enumerate(messages)}
    outcomes |= {f"tests/test_b.py::{at}": Outcome(status=PASSED) for at in range(passed)}
    return BuildRejection(
        reason=reason,
        detail="0 of 2 tests pass",
        log="",
        report=EvaluationReport(outcomes=outcomes, uncollected={}),
        expected_files=("tests/test_a.py",),
    )


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (NETWORK, Reason.NEEDS_NETWORK),
        ("Error: getaddrinfo EAI_AGAIN example.org", Reason.NEEDS_NETWORK),
        ("dial tcp: lookup example.org: no such host", Reason.NEEDS_NETWORK),
        ("java.net.UnknownHostException: example.org", Reason.NEEDS_NETWORK),
        ("SocketError: Failed to open TCP connection to example.org:80", Reason.NEEDS_NETWORK),
        ("OSError: [Errno 6] No such device or address: '/dev/tty'", Reason.NEEDS_TERMINAL),
        ("OSError: [Errno 25] Inappropriate ioctl for device", Reason.NEEDS_TERMINAL),
        ("Error: ENXIO: no such device or address, open '/dev/tty'", Reason.NEEDS_TERMINAL),
        ("_tkinter.TclError: no display name and no $DISPLAY environment variable", Reason.NEEDS_DISPLAY),
        ("java.awt.HeadlessException: No X11 DISPLAY variable was set", Reason.NEEDS_DISPLAY),
        ("locale.Error: unsupported locale setting", Reason.NEEDS_LOCALE),
        ("zoneinfo.ZoneInfoNotFoundError: 'No time zone found with key Mars/Base'", Reason.NEEDS_TIME_ZONE),
        ("unknown time zone Mars/Base", Reason.NEEDS_TIME_ZONE),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/home/mergemill/.x/y'", Reason.NEEDS_HOME),
        ("Error: ENOENT: no such file or directory, open '/home/mergemill/.x/y'", Reason.NEEDS_HOME),
        ("open /home/mergemill/.x/y: no such file or directory", Reason.NEEDS_HOME),
        ("PermissionError: [Errno 1] Operation not permitted: '/tmp/a'", Reason.NEEDS_ROOT),
        ("Error: EPERM: operation not permitted, chown '/tmp/a'", Reason.NEEDS_ROOT),
        ("chown /tmp/a: operation not permitted", Reason.NEEDS_ROOT),
        ("Errno::EPERM: Operation not permitted @ apply2files - /tmp/a", Reason.NEEDS_ROOT),
        ("PermissionError: [Errno 13] Permission denied: '/etc/app.conf'", Reason.NEEDS_ROOT),
        ("assert 1000 == 0\n +  where 1000 = <built-in function geteuid>()", None),
        ("AssertionError: 1 != 2", None),
    ],
)
def test_messages_of_several_languages_name_the_cause(message: str, reason: Reason | None) -> None:
    expected = reason or Reason.MOSTLY_FAILING
    named = name_cause(make_rejection(Reason.MOSTLY_FAILING, [message]))
    assert named.reason is expected
    assert (message.splitlines()[0] in named.detail) == (reason is not None)


def test_a_cause_of_few_failures_is_not_that_of_the_build() -> None:
    rejection = make_rejection(Reason.MOSTLY_FAILING, [NETWORK, "KeyError: 'a'", "KeyError: 'b'"])
    assert name_cause(rejection) is rejection


def test_a_build_that_was_never_run_has_no_such_cause() -> None:
    rejection = make_rejection(Reason.UNSTABLE, [NETWORK])
    assert name_cause(rejection) is rejection


def test_all_failing_tests_of_a_change_must_have_the_cause() -> None:
    named = name_gold_cause(make_rejection(Reason.GOLD_TESTS_FAIL, [NETWORK, NETWORK], passed=3))
    assert named is not None
    assert named.reason is Reason.NEEDS_NETWORK
    assert name_gold_cause(make_rejection(Reason.GOLD_TESTS_FAIL, [NETWORK, "KeyError"])) is None
    assert name_gold_cause(make_rejection(Reason.GOLD_TESTS_FAIL, [])) is None
