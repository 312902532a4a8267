"""Reviews on a bench: seventeen hand-made reviews with a key, the stored verdicts of a judge, and its calibration."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backends.git import GitRepository
from backends.llm.client import ChatModel
from core.config import Settings
from core.errors import InputError, Transient
from mergemill.bench.calibration import compute_calibration
from mergemill.bench.judging import ReviewJudging
from mergemill.bench.measurements import load_measurements
from mergemill.bench.measuring import measure_run
from mergemill.bench.review_metric import ReviewMetric, make_case
from mergemill.bench.sets import freeze
from mergemill.execution.progress import CountProgress
from taskdb.artifacts import Artifacts
from taskdb.queries.bench import find_calibration, list_runs, resolve_run
from taskdb.records import Task
from taskdb.records.bench import BenchRun, BenchSet
from taskdb.records.oracles import Defect, ReviewOracle
from taskdb.records.rollouts import Rollout
from taskdb.store import Store
from tests.backends.llm.conftest import client, server
from tests.backends.llm.server import ModelServer, ScriptedFailure
from tests.cli import run_mergemill
from tests.helpers import TinyRepo
from tests.mergemill.bench.making import LIMITS, find_row, make_scored, open_materials, report
from tests.mergemill.bench.reviews import (
    FALSE,
    FIXES,
    FOUND,
    GOLDEN,
    INVENTED,
    KNOWN,
    LOOP,
    PATH,
    TEXT,
    TRUE,
    add_review_task,
    answer_judge,
    encode_review,
    make_finding,
)
from tests.taskdb.lineages import make_url

__all__ = ["client", "server"]

NONE = (0.0, 0.0)
ALL = (1.0, 1.0)
OPEN = (0.0, 1.0)


@dataclass(frozen=True)
class Key:
    """Right result of a review: classes of its findings, and both bounds of each column."""

    classes: str
    found: tuple[float, float] | None
    hallucinations: tuple[float, float] | None
    precision: tuple[float, float] | None
    correct: tuple[float, float]

    @property
    def columns(self) -> dict[str, tuple[float, float] | None]:
        """Columns with their bounds; there is a single defect, so that recall is whether it is found."""
        return {
            "found": self.found,
            "recall": self.found,
            "hallucination_rate": self.hallucinations,
            "precision": self.precision,
            "correct": self.correct,
        }


@dataclass(frozen=True)
class HandMadeReview:
    """A submission to a task, with its key; `judged`: whether the judge is asked."""

    defects: tuple[Defect, ...]
    submission: bytes
    key: Key
    judged: bool = True


HALF = (0.5, 0.5)
EVERYTHING = [make_finding(line, "something may be wrong") for line in range(1, TEXT.count("\n"), 6)]
UNCLEAR = make_finding(17, "`discount`: prices may be negative")
FORGED = make_finding(17, "`discount` rounds cents")
PROPOSAL = make_finding(LOOP, "It leaves out the last item; use `sum_prices` instead")
NEAR = make_finding(LOOP, "The loop of `total` may be slow")
TWICE = make_finding(LOOP + 1, "In `total`, the sum lacks an item")
LATER = make_finding(17, "`discount`: the discount is not subtracted")
GENERAL = make_finding(13, "A cart with a single item costs nothing: `total`")
REVIEWS = {
    "found alone": HandMadeReview(KNOWN, encode_review(FOUND), Key("target", ALL, NONE, ALL, ALL)),
    "found and a true one": HandMadeReview(KNOWN, encode_review(FOUND, TRUE), Key("target valid", ALL, NONE, ALL, ALL)),
    "found and an invented function": HandMadeReview(
        KNOWN, encode_review(FOUND, INVENTED), Key("target invalid:nonexistent", ALL, HALF, HALF, NONE)
    ),
    "found with a proposed name": HandMadeReview(KNOWN, encode_review(PROPOSAL), Key("target", ALL, NONE, ALL, ALL)),
    "found twice": HandMadeReview(KNOWN, encode_review(FOUND, TWICE), Key("target duplicate", ALL, NONE, ALL, ALL)),
    "near lines, other meaning": HandMadeReview(KNOWN, encode_review(NEAR), Key("invalid", NONE, ALL, NONE, NONE)),
    "all lines": HandMadeReview(
        KNOWN, encode_review(*EVERYTHING), Key(" ".join(["invalid"] * len(EVERYTHING)), NONE, ALL, NONE, NONE)
    ),
    "empty": HandMadeReview(KNOWN, encode_review(), Key("", NONE, NONE, None, NONE)),
    "control without findings": HandMadeReview((), encode_review(), Key("", None, NONE, None, ALL)),
    "control with a true one": HandMadeReview((), encode_review(TRUE), Key("valid", None, NONE, ALL, ALL)),
    "control with a false one": HandMadeReview((), encode_review(FALSE), Key("invalid", None, ALL, NONE, NONE)),
    "unclear": HandMadeReview(
        KNOWN, encode_review(FOUND, UNCLEAR), Key("target unclear", ALL, (0.0, 0.5), (0.5, 1.0), OPEN)
    ),
    "judge down": HandMadeReview(
        KNOWN, encode_review(FOUND, TRUE), Key("target unclear", ALL, (0.0, 0.5), (0.5, 1.0), OPEN), judged=False
    ),
    "quote forged": HandMadeReview(
        KNOWN, encode_review(FOUND, FORGED), Key("target unclear", ALL, (0.0, 0.5), (0.5, 1.0), OPEN)
    ),
    "golden comment without lines": HandMadeReview(GOLDEN, encode_review(GENERAL), Key("target", ALL, NONE, ALL, ALL)),
    "fixed later": HandMadeReview(
        KNOWN, encode_review(FOUND, LATER), Key("target valid:fixed-later", ALL, NONE, ALL, ALL)
    ),
    "unreadable": HandMadeReview(KNOWN, b'{"findings": [', Key("", NONE, None, None, NONE)),
}


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "mergemill-store" / "artifacts")


@pytest.fixture
def judging(
    tmp_path: Path, artifacts: Artifacts, client: Callable[..., ChatModel], server: ModelServer
) -> ReviewJudging:
    server.script = answer_judge
    given: dict[str, Any] = {"store": tmp_path / "mergemill-store", "llm": server.url, "model": "scripted"}
    return ReviewJudging(
        model=client(**given), settings=Settings.model_validate(given), materials=open_materials(tmp_path)
    )


def make_task(artifacts: Artifacts, tmp_path: Path, defects: tuple[Defect, ...]) -> Task:
    with Store.open(make_url(tmp_path)) as store:
        return add_review_task(store, artifacts, 1, defects, others=FIXES)


@pytest.mark.parametrize("name", REVIEWS)
def test_every_column_and_both_bounds_equal_the_key(
    name: str, tmp_path: Path, artifacts: Artifacts, judging: ReviewJudging, server: ModelServer
) -> None:
    review = REVIEWS[name]
    task = make_task(artifacts, tmp_path, review.defects)
    assert isinstance(task.oracle, ReviewOracle)
    judgement = None
    if review.judged:
        judgement = json.loads(json.dumps(judging.measure(task, review.submission)))
    else:
        server.set_answers(ScriptedFailure(status=500))
        with pytest.raises(Transient):
            judging.measure(task, review.submission)
    case = make_case(task.oracle, open_materials(tmp_path).load(task), review.submission)
    classified = case.classify(judgement)
    assert classified is not None
    assert " ".join(name.value for name in classified[0]) == review.key.classes
    assert {name: bounds and tuple(bounds) for name, bounds in classified[1].items()} == review.key.columns


def test_without_a_model_lines_and_names_decide_and_a_golden_comment_is_unscored(
    tmp_path: Path, artifacts: Artifacts
) -> None:
    task = make_task(artifacts, tmp_path, KNOWN)
    assert isinstance(task.oracle, ReviewOracle)
    material = open_materials(tmp_path).load(task)
    case = make_case(task.oracle, material, encode_review(NEAR, INVENTED, LATER, TRUE))
    classified = case.classify(None)
    assert classified is not None
    assert [name.value for name in classified[0]] == ["target", "invalid:nonexistent", "valid:fixed-later", "unclear"]
    golden = task.oracle.model_copy(update={"defects": GOLDEN})
    assert make_case(golden, material, encode_review(GENERAL)).classify(None) is None
    assert make_case(golden, material, b"no").classify(None) is not None
    without = make_case(golden, material, encode_review()).classify(None)
    assert without is not None
    assert without[1]["found"] == NONE


def test_names_and_files_of_the_tree_exist_and_the_judge_is_shown_them(
    tmp_path: Path, artifacts: Artifacts, judging: ReviewJudging
) -> None:
    (tmp_path / "greet").mkdir()
    history = TinyRepo(tmp_path / "greet")
    commit = history.commit(
        "Add shop", {PATH: TEXT, "shop.py": "def apply_voucher(self):\n    return self.items[0].name\n"}
    )
    with Store.open(make_url(tmp_path)) as store:
        task = add_review_task(store, artifacts, 1, KNOWN, tree=commit)
    materials = open_materials(tmp_path)
    with pytest.raises(InputError, match="the tree of the review is not in the store"):
        materials.load(task)
    materials.trees.keep(task.repo, commit, GitRepository(history.path))
    elsewhere = make_finding(2, "`apply_voucher` fails for an empty cart", "shop.py")
    beyond = elsewhere | {"last_line": 3}
    nowhere = elsewhere | {"claim": "`apply_coupon` fails"}
    submission = encode_review(INVENTED, elsewhere, beyond, nowhere)
    assert isinstance(task.oracle, ReviewOracle)
    case = make_case(task.oracle, materials.load(task), submission)
    unjudged, judged = case.classify(None), case.classify(judging.measure(task, submission))
    assert unjudged is not None
    assert judged is not None
    invented = ["invalid:nonexistent"] * 2
    assert [name.value for name in unjudged[0]] == ["unclear", "unclear", *invented]
    assert [name.value for name in judged[0]][1:] == ["valid", *invented]


# ------------------------------------------------------------------------------------------------------- stored runs


@pytest.fixture
def stored(tmp_path: Path, artifacts: Artifacts) -> Iterator[tuple[Store, BenchSet, BenchRun]]:
    """A set of twelve reviews, of which three are controls, and a run on it."""
    seconds = itertools.count()
    with Store.open(make_url(tmp_path), clock=lambda: f"2026-01-01T00:00:00.{next(seconds):06}Z") as store:
        tasks = [add_review_task(store, artifacts, n, () if n > 9 else KNOWN) for n in range(1, 13)]
        bench_set = freeze(store, "first", tasks, LIMITS, held_out=False)
        reviews = [encode_review(FOUND, FORGED if n < 3 else TRUE) if n < 9 else encode_review() for n in range(12)]
        rollouts = [
            make_scored(task, 1, 1.0, submission=artifacts.put(review))
            for task, review in zip(tasks, reviews, strict=True)
        ]
        run = BenchRun(
            parent=bench_set.id,
            name="first",
            scaffold="react",
            scaffold_version="1",
            model="m",
            runs=1,
            rollouts=tuple(sorted(rollout.id for rollout in rollouts)),
        )
        store.add(*rollouts, run)
        yield store, bench_set, run


def measure(store: Store, run: BenchRun, judging: ReviewJudging) -> BenchRun:
    measured = measure_run(
        store, judging.materials.artifacts, run, [judging], workers=2, progress=CountProgress("submission", 0)
    )
    assert not measured.errors
    return measured.run


def test_a_second_report_asks_no_model_and_names_the_judge(
    tmp_path: Path, stored: tuple[Store, BenchSet, BenchRun], judging: ReviewJudging, server: ModelServer
) -> None:
    store, _, run = stored
    before = report(tmp_path, run, metrics=(ReviewMetric(),))
    row = find_row(before["figures"], column="correct")
    assert (row["mean"], row["bounds"], row["n"]) == (None, [0.0, 1.0], 0)
    assert find_row(before["figures"], column="clean.correct")["mean"] == 1.0
    run = measure(store, run, judging)
    n_requests = len(server.requests)
    assert n_requests > 30
    after = report(tmp_path, run, metrics=(ReviewMetric(),), by=("form",))
    row = find_row(after["figures"], column="correct", group="")
    assert (row["mean"], row["bounds"], row["n"]) == (1.0, [0.666667, 1.0], 6)
    assert {row["column"] for row in after["figures"] if row["group"] == "form=clean" and row["n"]} == {
        "clean.correct",
        "clean.hallucination_rate",
        "clean.value",
    }
    facts = after["runs"][0]["metrics"]["review"]
    assert facts["findings"] == {"target": 9, "valid": 6, "unclear": 3}
    assert facts["remarks"][0] == "judge scripted, finding-1: judge not calibrated"
    assert measure(store, run, judging).id == run.id
    assert report(tmp_path, run, metrics=(ReviewMetric(),), by=("form",)) == after
    assert len(server.requests) == n_requests  # void votes are stored as well


def add_other_run(store: Store, artifacts: Artifacts, run: BenchRun) -> BenchRun:
    """Add a run `first/react/n`, whose reviews are others than those of a run, but for the first and the empty ones."""
    rollouts = sorted(store.get_many(Rollout, run.rollouts).values(), key=lambda rollout: rollout.name)
    others = []
    for number, rollout in enumerate(rollouts):
        assert rollout.submission
        findings = json.loads(artifacts.get(rollout.submission))["findings"]
        changed = findings if number == 0 else [finding | {"claim": f"{finding['claim']}."} for finding in findings]
        task = store.get(Task, rollout.parent)
        others.append(make_scored(task, 1, 1.0, model="n", submission=artifacts.put(encode_review(*changed))))
    ids = tuple(sorted(rollout.id for rollout in others))
    other = BenchRun.model_validate(run.model_dump() | {"model": "n", "rollouts": ids})
    store.add(*others, other)
    return other


def describe_review(made: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {run["run"]: run["metrics"]["review"] for run in made["runs"]}


def test_runs_by_different_judges_are_not_compared_and_each_report_names_its_own(
    tmp_path: Path, stored: tuple[Store, BenchSet, BenchRun], judging: ReviewJudging, artifacts: Artifacts
) -> None:
    store, _, run = stored
    other = add_other_run(store, artifacts, run)
    run = measure(store, run, judging)
    alone = report(tmp_path, run, metrics=(ReviewMetric(),))
    judging.model.name = "newer"
    other = measure(store, other, judging)
    # The newer judge has decided one review of the first run, as both runs have handed it in.
    assert report(tmp_path, run, metrics=(ReviewMetric(),)) == alone
    described = describe_review(report(tmp_path, run, other, metrics=(ReviewMetric(),)))
    assert {name: facts["judge"] for name, facts in described.items()} == {
        "first/react/m": "scripted",
        "first/react/n": "newer",
    }
    assert [facts["findings"] for facts in described.values()] == [{"target": 9, "valid": 6, "unclear": 3}] * 2
    with pytest.raises(InputError, match=r"changed-judge: .* by newer \(finding-1\), scripted \(finding-1\)") as raised:
        report(tmp_path, run, against=other, metrics=(ReviewMetric(),))
    words = "bench score first --run first/react/m --run first/react/n --metric review"
    assert raised.value.advice == f"mergemill {words} with one judge"
    assert report(tmp_path, run, against=other)["differences"]
    given = ("--llm", judging.settings.llm.url, "--model", "newer", "--db", make_url(tmp_path))
    done = run_mergemill(*words.split(), *given, cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    runs = [resolve_run(store, f"first/react/{model}") for model in "mn"]
    made = report(tmp_path, runs[0], against=runs[1], metrics=(ReviewMetric(),))
    assert {facts["judge"] for facts in describe_review(made).values()} == {"newer"}
    assert find_row(made["differences"], column="found")["difference"] == 0.0


def test_a_run_without_verdicts_names_no_judge_and_is_compared_with_such_alone(
    tmp_path: Path, stored: tuple[Store, BenchSet, BenchRun], judging: ReviewJudging, artifacts: Artifacts
) -> None:
    store, _, run = stored
    other = add_other_run(store, artifacts, run)
    assert report(tmp_path, run, against=other, metrics=(ReviewMetric(),))["differences"]
    run = measure(store, run, judging)
    described = describe_review(report(tmp_path, other, metrics=(ReviewMetric(),)))["first/react/n"]
    assert (described["judge"], described["unjudged"]) == ("scripted", 8)
    assert described["remarks"][0] == "judge scripted, finding-1, 8 reviews without its verdict: judge not calibrated"
    with pytest.raises(InputError, match=r"changed-judge: .* by no judge, scripted \(finding-1\)"):
        report(tmp_path, run, against=other, metrics=(ReviewMetric(),))
    rollouts = {rollout.name: rollout.id for rollout in store.get_many(Rollout, other.rollouts).values()}
    # Without the review that both have, nothing of the other run was put to the judge.
    fewer = sorted(key for name, key in rollouts.items() if name != "ada__greet-1.review-1")
    shorter = BenchRun.model_validate(other.model_dump() | {"rollouts": tuple(fewer)})
    store.add(shorter)
    described = describe_review(report(tmp_path, shorter, metrics=(ReviewMetric(),)))["first/react/n"]
    assert (described["judge"], described["prompt"], described["unjudged"]) == (None, None, 8)
    assert described["remarks"][0] == "no judge: judge not calibrated"


def test_labelled_findings_calibrate_the_judge(
    tmp_path: Path, stored: tuple[Store, BenchSet, BenchRun], judging: ReviewJudging, server: ModelServer
) -> None:
    given = ("--llm", server.url, "--model", "scripted", "--db", make_url(tmp_path))
    words = ("bench", "score", "first", "--run", "first/react/m", "--metric", "review")
    scored = run_mergemill(*words, *given, cwd=tmp_path)
    assert scored.exit_code == 0, scored.stderr
    assert "first/react/m: judge scripted, finding-1: judge not calibrated" in scored.stdout
    rows = [
        {"subject": f"ada__greet-{n}.review-1", "label": "valid" if n % 2 else "invalid"} | (TRUE if n % 2 else FALSE)
        for n in range(1, 13)
    ]
    rows[1] |= {"claim": "`first_name` fails for an empty cart"}  # labelled invalid, judged valid
    rows += [
        {"subject": "ada__greet-1.review-1", "label": "maybe"} | TRUE,
        {"subject": "ada__greet-99", "label": "valid"},
    ]
    (tmp_path / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("bench", "judge", "first", "--labels", "labels.jsonl", "--json")
    done = run_mergemill(*words, *given, cwd=tmp_path)
    assert done.exit_code == 3
    assert "labels.jsonl, line 13: its label is none of valid, invalid" in done.stderr
    assert "line 14" in done.stderr
    calibration = done.json
    assert (calibration["n"], calibration["judge"], calibration["unclear"]) == (12, "scripted", 0)
    assert calibration["false_valid"]["mean"] == pytest.approx(1 / 6, abs=1e-6)
    assert calibration["false_invalid"]["mean"] == 0.0
    assert calibration["kappa"]["mean"] == pytest.approx(5 / 6, abs=1e-6)
    assert calibration["kappa"]["low"] < 5 / 6 < calibration["kappa"]["high"] <= 1
    store, bench_set, _ = stored
    assert [run.scaffold for run in list_runs(store)] == ["react"]
    run = resolve_run(store, "first/react/m")
    made = report(tmp_path, run, metrics=(ReviewMetric(),))
    (remark, _) = made["runs"][0]["metrics"]["review"]["remarks"]
    assert remark.startswith("judge scripted, finding-1: false-valid 0.17")
    assert remark.endswith("on 12 labelled findings")
    assert find_calibration(store, bench_set.id, "another", "finding-1") is None
    assert run_mergemill(*words, *given[4:], cwd=tmp_path).exit_code == 2


def test_a_judge_that_is_down_leaves_findings_open_until_the_same_command(
    stored: tuple[Store, BenchSet, BenchRun], judging: ReviewJudging, server: ModelServer
) -> None:
    store, _, run = stored
    server.set_answers(ScriptedFailure(status=500))
    down = measure_run(
        store, judging.materials.artifacts, run, [judging], workers=1, progress=CountProgress("submission", 0)
    )
    assert (len(down.errors), down.measured) == (9, 3)  # the reviews of controls are empty
    assert all(isinstance(error, Transient) for error in down.errors)
    server.script = answer_judge
    assert measure(store, down.run, judging).result != down.run.result
    for judge in ("newer", "scripted", "newer", "scripted"):
        judging.model.name = judge
        measure(store, resolve_run(store, "first/react/m"), judging)
        measurements = load_measurements(store, judging.materials.artifacts, store.get(BenchSet, run.parent))
        assert measurements.get_maker("review") == f"finding-1 {judge}"


def test_calibration_counts_unclear_verdicts_as_disagreement() -> None:
    made = compute_calibration(["valid", "valid", "invalid"], ["valid", "unclear", "invalid"], ["a", "b", "c"])
    assert (made["unclear"], made["false_valid"]["mean"], made["false_invalid"]["mean"]) == (1, 0.0, 0.0)
    assert made["kappa"] == {"mean": 0.5, "low": None, "high": None}
