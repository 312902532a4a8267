"""`mergemill simulate measure`: shares of a simulator whose errors are known, from tasks with stored real scores."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from taskdb.queries import readonly
from taskdb.queries.simulator_agreement import compute_agreement, load_measurements
from taskdb.records.difficulty import compute_wilson_interval
from taskdb.records.simulator_measurements import PredictionCounts, SimulatorMeasurement, SubmissionKind
from taskdb.store import Store
from tests.cli import CommandResult, run_mergemill
from tests.graded_tasks import make_bugfix
from tests.mergemill.measured_tasks import KnownSubmission, make_simulator, make_tasks, store_scores
from tests.samplers.scripted_model import ModelRequest, ScriptedModel, Turn
from tests.simulators.making import read_prompt
from tests.taskdb.lineages import make_url


def measure(folder: Path, model: ScriptedModel | str, *words: str) -> CommandResult:
    url = model if isinstance(model, str) else model.url
    given = ("--db", make_url(folder), "--llm", url, "--model", "scripted", "--samples", "1", "--per-kind", "1")
    return run_mergemill("simulate", "measure", *given, *words, cwd=folder)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[KnownSubmission]]:
    folder = tmp_path_factory.mktemp("tasks")
    make_tasks(folder)
    return folder, store_scores(folder, per_kind=1)


def copy_tasks(known: tuple[Path, list[KnownSubmission]], to: Path) -> list[KnownSubmission]:
    """Copy the database; the repository that it names stays where it is."""
    shutil.copy(known[0] / "m.db", to / "m.db")
    shutil.copytree(known[0] / "mergemill-store", to / "mergemill-store")
    return known[1]


def choose(folder: Path, *numbers: int) -> str:
    """Write the names of tasks to a file; return its path."""
    (folder / "names").write_text("\n".join(f"ada__greet-{number}.bugfix" for number in numbers))
    return str(folder / "names")


def count(errors: int, trials: int) -> dict[str, Any]:
    low, high = compute_wilson_interval(errors, trials)
    return {"n": errors, "of": trials, "share": round(errors / trials, 6), "low": round(low, 6), "high": round(high, 6)}


def test_a_known_error_rate_is_returned_exactly(known: tuple[Path, list[KnownSubmission]], tmp_path: Path) -> None:
    """Acceptance 6: ten certified tasks, a simulator that pays every fifth wrong program, and 3 right ones not."""
    submissions = copy_tasks(known, tmp_path)
    failing = [submission for submission in submissions if not submission.resolved]
    passing = [submission for submission in submissions if submission.resolved]
    assert len({submission.task.id for submission in submissions}) == 10
    assert {submission.kind for submission in submissions} == set(SubmissionKind) - {SubmissionKind.ROLLOUT}
    assert len(failing) >= 25
    assert len(passing) >= 10
    paid, unpaid = (
        {submission.program for submission in failing[::5]},
        {submission.program for submission in passing[:3]},
    )
    with ScriptedModel(make_simulator(paid, unpaid)) as model:
        done = measure(tmp_path, model, "--json")
        table = measure(tmp_path, model, "--max-false-pass", "0.4").stdout
    assert done.exit_code == 0, done.stderr
    *events, summary = done.lines
    n_paid, n_unpaid = (sum(submission.program in some for submission in submissions) for some in (paid, unpaid))
    assert (n_paid, n_unpaid) == (len(failing[::5]), 3)
    assert summary["false_pass"] == count(n_paid, len(failing))
    assert summary["false_fail"] == count(3, len(passing))
    n_wrong = n_paid + 3
    assert summary["submissions"] == count(len(submissions) - n_wrong, len(submissions))
    assert summary["brier"] == round(n_wrong / len(submissions), 6), "with one sample it is the share of errors"
    wrong_tasks = {submission.task.id for submission in submissions if submission.program in paid | unpaid}
    assert summary["tasks"] == count(10 - len(wrong_tasks), 10)
    assert {event["event"] for event in events} == {"measurement"}
    assert (len(events), summary["measured"], summary["new"], summary["unanswered"]) == (len(submissions),) * 3 + (0,)
    check_tests(summary, submissions, paid, unpaid)
    assert re.search(rf"wrong submissions that would be paid +{n_paid} +{len(failing)} ", table)
    assert f"{len(submissions)} submissions measured, 0 now" in table
    assert "for 40.0% it may be trained on" in table


def check_tests(summary: dict[str, Any], submissions: list[KnownSubmission], paid: set[str], unpaid: set[str]) -> None:
    """Compare the counts of tests; of a score with a share between 0 and 1, the tests of that list are not known."""
    pairs, unknown = [], 0
    for submission in submissions:
        lists = ([test for test, _ in submission.task.FAIL_TO_PASS], list(submission.task.PASS_TO_PASS))
        for tests in lists:
            passed = [submission.outcomes[test] for test in tests]
            if len(set(passed)) > 1:
                unknown += len(tests)
                continue
            for test in tests:
                real = submission.outcomes[test]
                predicted = submission.program in paid or (
                    real and not (submission.program in unpaid and "::test_it_adds" in test)
                )
                pairs.append((real, predicted))
    assert unknown == summary["unknown_tests"] > 0
    assert summary["tests"] == count(sum(real == predicted for real, predicted in pairs), len(pairs))
    assert summary["test_false_pass"] == count(pairs.count((False, True)), sum(not real for real, _ in pairs))
    assert summary["test_false_fail"] == count(pairs.count((True, False)), sum(real for real, _ in pairs))


def test_what_was_measured_is_not_measured_again(known: tuple[Path, list[KnownSubmission]], tmp_path: Path) -> None:
    copy_tasks(known, tmp_path)
    with ScriptedModel(make_simulator()) as model:
        first, again, more = (
            measure(tmp_path, model, "--ids", choose(tmp_path, 1, 2), *words, "--json").lines[-1]
            for words in (
                ("--submissions", "gold,none"),
                ("--submissions", "gold,none"),
                ("--submissions", "none,hunk"),
            )
        )
        assert len(model.requests) == 6
    assert (first["new"], again["new"], again["earlier"]) == (4, 0, 4)
    assert (more["planned"], more["earlier"], more["measured"]) == (4, 2, 6)
    assert more["kinds"].keys() == {"gold", "none", "hunk"}
    with Store.open(make_url(tmp_path)) as store:
        rows = readonly.run_query(store, "SELECT * FROM simulator_measurements WHERE kind = 'none'")
        assert {(row["environment"], row["resolved"], row["predicted"], row["probability"]) for row in rows} == {
            ("simulated", 0, 0, 0.0)
        }
        assert len(load_measurements(store, "scripted")) == 6


def test_an_endpoint_that_refuses_costs_nothing_that_was_measured(
    known: tuple[Path, list[KnownSubmission]], tmp_path: Path
) -> None:
    copy_tasks(known, tmp_path)
    options = ("--submissions", "gold", "--ids", choose(tmp_path, 1), "--json")
    with ScriptedModel(make_simulator()) as model:
        assert measure(tmp_path, model, *options).lines[-1]["new"] == 1
    with ScriptedModel(lambda _: Turn(fault="401")) as model:
        refused = measure(tmp_path, model, "--submissions", "gold", "--json")
        assert (refused.exit_code, refused.stdout) == (3, "")
        assert measure(tmp_path, model, *options).lines[-1]["measured"] == 1


def test_a_simulator_without_a_usable_answer_is_in_no_share(
    known: tuple[Path, list[KnownSubmission]], tmp_path: Path
) -> None:
    copy_tasks(known, tmp_path)
    options = ("--submissions", "gold,none", "--ids", choose(tmp_path, 1), "--json")
    with ScriptedModel(lambda _: Turn(text="I cannot say.")) as model:
        summary = measure(tmp_path, model, *options).lines[-1]
    assert (summary["unanswered"], summary["brier"], summary["usable"]) == (2, None, False)
    assert summary["submissions"] == {"n": 0, "of": 0, "share": None, "low": 0.0, "high": 1.0}


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("--submissions", "all"), 2, "--submissions: all is unknown (of gold, none, hunk, bug, rollout)"),
        (("--llm", "off"), 2, "a simulator is needed"),
        (("--repo", "ada/none"), 3, "no certified task with lists of tests is selected"),
    ],
)
def test_bad_options_are_a_line(
    known: tuple[Path, list[KnownSubmission]], tmp_path: Path, words: tuple[str, ...], code: int, line: str
) -> None:
    copy_tasks(known, tmp_path)
    done = measure(tmp_path, "http://127.0.0.1:9/v1", *words)
    assert (done.exit_code, line in done.stderr) == (code, True), done.stderr


@pytest.mark.docker
def test_submissions_without_a_score_are_graded_really(tmp_path: Path) -> None:
    """A certified bug fix of the sample, graded in containers; a simulator that lets all tests pass."""
    tasks = make_bugfix(tmp_path)

    def pass_all(request: ModelRequest) -> Turn:
        named = re.findall(r"^Test file (\S+):$|^\s*def (test_\w+)", read_prompt(request), re.MULTILINE)
        tests, file = [], ""
        for path, name in named:
            file = path or file
            if name:
                tests.append({"test": f"{file}::{name}", "outcome": "passed", "reason": "as it is"})
        return Turn(text=json.dumps({"tests": tests}))

    words = ("--db", tasks.settings.storage.db, "--model", "scripted", "--samples", "1", "--per-kind", "1", "--json")
    with ScriptedModel(pass_all) as model:
        done = run_mergemill("simulate", "measure", "--llm", model.url, *words, cwd=tasks.folder)
        assert done.exit_code == 0, done.stderr
        again = run_mergemill("simulate", "measure", "--llm", model.url, *words, cwd=tasks.folder)
    *events, summary = done.lines
    outcomes = {event["kind"]: (event["resolved"], event["predicted"]) for event in events}
    assert (outcomes["gold"], outcomes["none"]) == ((True, True), (False, True))
    wrong = sum(not resolved for resolved, _ in outcomes.values())
    assert (summary["false_pass"]["n"], summary["false_pass"]["of"]) == (wrong, wrong)
    assert summary["unknown_tests"] == 0, "a share between 0 and 1 is followed by a run of its own"
    assert again.lines[-1]["new"] == 0


def make_measurement(resolved: bool, *predicted: bool | None, parent: str = "t", **fields: Any) -> SimulatorMeasurement:
    given: dict[str, Any] = {
        "parent": parent,
        "name": parent,
        "simulator": "m",
        "prompt": "simulated-run-1",
        "kind": SubmissionKind.NONE,
        "submission": "s",
        "samples": len(predicted),
        "grader": "g",
        "resolved": resolved,
        "predicted": predicted,
    }
    return SimulatorMeasurement(**given | fields)


def test_the_brier_score_is_over_all_samples_and_the_shares_over_the_first() -> None:
    measured = [
        make_measurement(False, True, False, False, False),
        make_measurement(True, True, None, False, True),
        make_measurement(True, None, True),
        make_measurement(False, None),
    ]
    agreement = compute_agreement(measured)
    expected = ((1 / 4) ** 2 + (2 / 3 - 1) ** 2 + 0) / 3
    assert agreement.brier == pytest.approx(expected)
    assert (agreement.false_pass.number, agreement.false_pass.trials) == (1, 1)
    assert (agreement.false_fail.number, agreement.false_fail.trials) == (0, 1)
    assert agreement.unanswered == 2


def test_a_measurement_is_identified_by_what_was_measured() -> None:
    measurement = make_measurement(False, True)
    assert make_measurement(True, False, tests=PredictionCounts(both_pass=3), at="now").id == measurement.id
    assert make_measurement(False, True, submission="other").id != measurement.id
    assert make_measurement(False, True, simulator="other").id != measurement.id
