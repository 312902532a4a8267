"""Text of a change's history: its position, the events of each stage, attempts, tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from core.text import format_count
from mergemill.cli import output
from taskdb.queries.evidence import VerdictRanks, describe_scores
from taskdb.queries.runs import count_submissions
from taskdb.records import Stage

EVENT_COLUMNS = ("at", "stage", "kind", "verdict", "seconds", "detail")
SHOWN_TESTS = 10
"""Tests of a list that are shown."""
MOSTLY_SKIPPED = 0.5
"""Share of skipped tests from which on it is shown."""
ATTEMPT_COLUMNS = ("number", "proposed_by", "edits", "reason", "seconds", "tokens", "cost", "detail")


def print_change_report(
    report: dict[str, Any], *, has_log: bool, has_conversation: bool = False, ranks: VerdictRanks | None = None
) -> None:
    """Print the rows that `taskdb.queries.tasks.explain_change` returned.

    Args:
        report: the change with its events.
        has_log: whether the log of its rejection is stored.
        has_conversation: whether a model's conversation about its build is stored.
        ranks: ranks of its verdict among the tasks.
    """
    name = report["name"]
    output.print_text(f"{name} of {report['source']}: {_format_position(report['events'])}\n")
    output.print_text(f"kinds: {format_tags(report['tags'])}\nstatement: {format_verdict(report['verdict'], ranks)}")
    output.print_text(f"verification: {format_verification(report['verification'])}")
    if environment := report.get("environment"):
        output.print_text(f"environment: {format_environment(environment)}")
    output.print_text("")
    events = [
        {"kind": ""} | event | {"verdict": "ok" if event["ok"] else event["reason"]} for event in report["events"]
    ]
    has_kinds = any(event["kind"] for event in events)
    columns = tuple(column for column in EVENT_COLUMNS if has_kinds or column != "kind")
    output.print_rows(events, columns, as_lines=False, nothing="no stage has run")
    if len(report["attempts"]) > 1:
        output.print_text("\nattempts to build its environment")
        output.print_rows(report["attempts"], ATTEMPT_COLUMNS, as_lines=False, nothing="")
    output.print_text("")
    if "waiting_for" in report:
        output.print_text(f"waits because of a quota of its repository: {report['waiting_for']}")
    for runs in report.get("runs", ()):
        output.print_text(format_runs(runs))
    for mirrored in report.get("mirrored", ()):
        output.print_text(f"{mirrored['task']} mirrors {mirrored['change']} of {mirrored['repo']}")
    for task_id in report["tasks"]:
        output.print_text(f"task: mergemill tasks show {task_id[:16]}")
    if report["published"]:
        _print_published(report["published"])
    if has_log:
        output.print_text(f"log:  mergemill why {name} --log")
    if has_conversation:
        output.print_text(f"conversation: mergemill why {name} --conversation")


def format_runs(runs: Mapping[str, Any]) -> str:
    """Return the runs of the tests that a task took, by what they were made for."""
    kinds = ", ".join(f"{number} {kind}" for kind, number in runs["verification"].items())
    parts = [f"verification {sum(runs['verification'].values())}{f' ({kinds})' if kinds else ''}"]
    if runs["certificate"] is not None:
        exploits = format_exploits(runs["exploits"], runs["exploits_of"], runs["submissions"])
        parts.append(f"certificate {runs['certificate']} ({exploits})")
    return f"runs of {runs['name']}: {runs['total']}; {', '.join(parts)}"


def format_certificate(certificate: Mapping[str, Any] | None) -> str:
    """Return the values of a certificate, and the tasks on whose gradings it relies."""
    if certificate is None:
        return "none"
    reference = certificate["exploits_of"]
    submissions = count_submissions(certificate["exploits"], certificate["combined_exploits"])
    exploits = format_exploits(len(certificate["exploits"]), reference["name"] if reference else None, submissions)
    gold = ", ".join(f"{value:g}" for value in certificate["gold"])
    if certificate.get("gold_of"):
        gold += f" (the first its own, the others of {certificate['gold_of']['name']})"
    return f"gold {gold}; no-op {certificate['noop']:g}; {exploits}; {format_count(certificate['evaluations'], 'run')}"


def format_exploits(number: int, exploits_of: str | None, submissions: int) -> str:
    """Return how many exploits were graded for a certificate, or the task on whose exploits it relies."""
    if exploits_of:
        return f"relies on the exploits of {exploits_of}"
    combined = f" in {format_count(submissions, 'submission')}" if submissions < number else ""
    return format_count(number, "exploit") + combined


def _print_published(published: dict[str, Any]) -> None:
    readings = f" (ids read: {', '.join(published['readings'])})" if published.get("readings") else ""
    output.print_text(f"published FAIL_TO_PASS: {published['verdict']}{readings}")
    for name in ("fail_to_pass", "pass_to_pass"):
        output.print_fields((f"{name} {side}", _shorten(published[name][side])) for side in ("missing", "extra"))
    groups = [f"{group['published']} ({group['level']}, {group['tests']})" for group in published.get("groups", ())]
    if groups:
        output.print_fields([("published ids that stand for several tests", _shorten(groups))])
    causes = published.get("causes", ())
    counts = Counter((cause["list_name"], cause["side"], cause["cause"]) for cause in causes)
    for (list_name, side, cause), number in sorted(counts.items()):
        key = (list_name, side, cause)
        first = next(
            published_cause
            for published_cause in causes
            if (published_cause["list_name"], published_cause["side"], published_cause["cause"]) == key
        )
        output.print_text(f"  {list_name} {side}: {cause} {number}, such as {first['test']}: {first['detail']}")


def _shorten(tests: Sequence[str]) -> str:
    """Return the first tests of a list that may have thousands; JSON has all."""
    rest = len(tests) - SHOWN_TESTS
    return ", ".join(tests[:SHOWN_TESTS]) + (f" and {rest} more (--json lists all)" if rest > 0 else "") or "-"


def format_tags(tags: dict[str, Any] | None) -> str:
    """Return the kinds of a change, each with its strongest evidence."""
    if tags is None:
        return "not tagged"
    kinds = []
    for tag in tags["change_kinds"]:
        evidence = f": {tag['evidence'][0]['rule']} {tag['evidence'][0]['quote']!r}" if tag["evidence"] else ""
        kinds.append(f"{tag['change_kind']} ({tag['confidence']:.2f}{evidence})")
    route = f"for {' '.join(tags['route'])}" if tags["route"] else tags["stop_reason"]
    return f"{', '.join(kinds)}; {tags['size']}; {route}"


def format_verdict(verdict: dict[str, Any] | None, ranks: VerdictRanks | None = None) -> str:
    """Return the judge's verdict on a statement in a single line: its evidence, then what was concluded."""
    if verdict is None:
        return "not judged"
    scores = [f"{name}: {description}" for name, description in describe_scores(verdict, ranks).items()]
    set_aside = f"set aside for {verdict['set_aside']}" if verdict["set_aside"] else ""
    completed = format_completion(verdict["completion"]) if verdict["completion"] else ""
    opinions = f"{len(verdict['opinions'])} opinions" if verdict["opinions"] else ""
    findings = [f"{finding['rule']} {finding['quote'][:60]!r}" for finding in verdict["findings"]] or ["no finding"]
    return "; ".join(part for part in (*findings, set_aside, completed, opinions, ", ".join(scores)) if part)


def format_completion(completion: dict[str, Any]) -> str:
    """Return who completed a statement and the judge's scores of both versions, or why nobody did."""
    if not completion["addition"]:
        return f"not completed: {completion['rejected'][-1]}"
    before, after = completion["before"], completion["after"]
    if not before or not after:  # completed before both versions were scored
        return f"completed by {completion['made_by']}"
    scores = ", ".join(
        f"{label} {before[name]:.2f} -> {after[name]:.2f}"
        for label, name in (("underspecified", "underspecified"), ("unfair tests", "unfair_tests"))
    )
    return f"completed by {completion['made_by']} ({scores})"


def format_verification(verification: dict[str, Any] | None) -> str:
    """Return who wrote the tests if a model did, whether the script has canaries, and tests left out or weak."""
    if verification is None:
        return "none"
    written = verification["written_tests"]
    faults = f"{written['faults_detected']} of {written['faults']} faults detected" if written else ""
    author = f"tests written by {written['model']}, {faults}; " if written else ""
    no_canaries = "no canaries, as the test runner does not collect or report added test files"
    canaries = no_canaries if verification["dropped_canaries"] else "with canaries"
    flaky = [f"{test} ({counts})" for test, counts in verification["flaky"].items()]
    weak = [f"{test['test']} ({test['weakness']}: {test['evidence']})" for test in verification["weak_tests"]]
    weak_tests = f"; weak tests: {_shorten(weak)}" if weak else ""
    share = verification["skipped_share"]
    skipped = f"; {share:.0%} of the tests are skipped" if share >= MOSTLY_SKIPPED else ""
    incidental = verification["incidental_files"]
    left_out = f"; incidental files left out of the gold patch: {_shorten(incidental)}" if incidental else ""
    return f"{author}{canaries}; flaky tests left out: {_shorten(flaky)}{weak_tests}{skipped}{left_out}"


def format_environment(environment: Mapping[str, Any]) -> str:
    """Return the image of a change's environment, and the tasks that it gave whatever became of the change."""
    tasks = [
        f"{format_count(numbers['tasks'], f'{kind} task')}, {numbers['certified']} of them certified"
        for kind, numbers in environment["tasks"].items()
    ]
    return "; ".join((environment["image"], *tasks))


def _format_position(events: list[dict[str, Any]]) -> str:
    """Return the last event of each kind of task and of the change itself; certified kinds are listed together."""
    if not events:
        return "no stage has run"
    last = {event.get("kind"): event for event in events}
    certified = [kind for kind, event in last.items() if kind and event["ok"] and event["stage"] == Stage.CERTIFY]
    parts = ["certified " + ", ".join(certified)] if certified else []
    parts += [f"{kind}: {_format_event(event)}" for kind, event in last.items() if kind and kind not in certified]
    own_event = last.get(None)
    if own_event and not (parts and own_event["ok"]):
        parts.append(_format_event(own_event))
    return "; ".join(parts)


def _format_event(event: dict[str, Any]) -> str:
    if not event["ok"]:
        detail = f": {event['detail']}" if event["detail"] else ""
        return f"rejected by {event['stage']}, {event['reason']}{detail}"
    if event["stage"] == Stage.CERTIFY:
        return "certified"
    return f"passed {event['stage']}, the next stage is pending"


def format_strength(strength: Mapping[str, Any]) -> str:
    """Return a line: tests with controls and, where an audit measured it, the faults that the tests detect and miss."""
    guarded = f"{strength['controls']} of {strength['fail_to_pass']} FAIL_TO_PASS tests have a sabotaged test"
    if not strength.get("edits"):
        return guarded
    score = "not measured" if strength["score"] is None else f"{strength['score']:.2f}"
    parts = [
        f"{strength['hunks_detected']} of {format_count(strength['hunks'], 'omitted hunk')}",
        f"{strength['mutants_detected']} of {format_count(strength['mutants'], 'mutant')} detected",
        f"{strength['variants_accepted']} of {format_count(strength['variants'], 'rewrite')} accepted",
        *([f"untested: {', '.join(strength['untested_hunks'])}"] if strength["untested_hunks"] else []),
    ]
    return f"{score}: {', '.join(parts)}; {guarded}"
