"""Conditions under which rejected changes would give a task: complete, documented, and counted."""

from __future__ import annotations

import re
from collections.abc import Collection
from importlib import import_module
from pathlib import Path

import pytest

from mergemill.pipeline.losses import CERTIFY, CONDITIONS, UNKNOWN, compute_losses
from taskdb.records import Kind, Stage
from taskdb.store import Store
from tests import records
from tests.cli import run_mergemill
from tests.taskdb.lineages import add_lineage, make_url
from verifiers.judge.rules import DECISIVE

ROOT = Path(__file__).parents[3]
REASONS = {
    Stage.MINE: ["miner.changes.Reason"],
    Stage.BUILD: ["builders.acceptance.Reason"],
    Stage.VERIFY: ["verifiers.verify.Reason", "verifiers.written_tests.answer.WritingReason"],
    Stage.DERIVE: [
        "derivers.bugfix.Reason",
        "derivers.combined.evaluation.Reason",
        "derivers.feature.Reason",
        "derivers.injected.search.Reason",
        "derivers.instructions.Reason",
        "derivers.mirrored.gates.Reason",
        "derivers.performance.Reason",
        "derivers.rebuild.search.Reason",
        "derivers.review.construction.Reason",
        "derivers.simulated.Reason",
        "derivers.structure.migration.Reason",
        "derivers.structure.refactoring.Reason",
        "derivers.test_writing.oracle_builder.Reason",
        "derivers.variants.Reason",
        "mergemill.pipeline.kinds.Reason",
    ],
    Stage.CERTIFY: ["verifiers.certify.Reason"],
}


def list_reasons(stage: Stage) -> set[str]:
    """Return the reasons for which a stage rejects, from its classes."""
    names = (name.rpartition(".") for name in REASONS[stage])
    return {str(reason) for module, _, name in names for reason in getattr(import_module(module), name)}


@pytest.mark.parametrize("stage", REASONS)
def test_every_reason_of_a_stage_has_a_condition(stage: Stage) -> None:
    further: Collection[str] = DECISIVE if stage is Stage.DERIVE else ()
    assert not ({*list_reasons(stage), *further} - CONDITIONS[stage].keys())
    defined = {
        str(path.relative_to(ROOT)) for path in (ROOT / "derivers").rglob("*.py") if "class Reason(" in path.read_text()
    }
    named = {
        name.rpartition(".")[0].replace(".", "/") for name in REASONS[Stage.DERIVE] if name.startswith("derivers.")
    }
    assert {path.removesuffix(".py").removesuffix("/__init__") for path in defined} == named


def test_the_page_has_the_conditions_and_they_name_options_that_exist() -> None:
    page = (ROOT / "docs/guide/query/losses.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"(?ms)^## (\w+)$(.*?)(?=^## |^---)", page))
    for stage, conditions in CONDITIONS.items():
        rows = re.findall(r"(?m)^\| `([\w-]+)` \| (.+) \|$", sections[stage.value.title()])
        assert dict(rows) == conditions
        assert len(rows) == len(conditions)
    options = re.findall(r"`(--[a-z-]+)", page)
    reference = (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8")
    assert not [option for option in options if f"`{option}" not in reference]


def test_losses_are_counted_by_stage_and_kind_with_their_shares(tmp_path: Path) -> None:
    url = make_url(tmp_path)
    with Store.open(url) as store:
        for number, reason in enumerate(["no-tests", "no-tests", "bot", "of-another-version"], 1):
            pull = records.make_pull_request(number)
            store.add_mined_changes((pull, records.make_rejection(pull, Stage.MINE, reason), 0.1))
        task = add_lineage(store, 5, to=Stage.DERIVE)
        store.add(records.make_rejection(task, Stage.CERTIFY, "noop-passes", kind=Kind.BUGFIX))
        rows = compute_losses(store)
        assert [(row["stage"], row["kind"], row["reason"], row["rejected"], row["share"]) for row in rows] == [
            ("mine", "", "no-tests", 2, 0.5),
            ("mine", "", "bot", 1, 0.25),
            ("mine", "", "of-another-version", 1, 0.25),
            ("certify", "bugfix", "noop-passes", 1, 1.0),
        ]
        assert (rows[2]["condition"], rows[3]["condition"]) == (UNKNOWN, CERTIFY["noop-passes"])
        assert [row["kind"] for row in compute_losses(store, repo="ada/greet")] == [""] * 3
        assert compute_losses(store, ["git:other"]) == []
    assert run_mergemill("funnel", "--losses", "--json", "--db", url, cwd=tmp_path).lines == rows
    assert "an empty submission failed" in run_mergemill("funnel", "--losses", "--db", url, cwd=tmp_path).stdout
    assert run_mergemill("funnel", "--losses", "--by", "repo", "--db", url, cwd=tmp_path).exit_code == 2
