"""`mergemill audit` on bundles and on unknown targets; certified tasks are audited in test_end_to_end.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

import exporters
from mergemill.cli.grading import audit as audit_command
from mergemill.cli.queries.change_report import format_strength
from mergemill.grading.audit import TaskAudit
from tests.cli import run_mergemill
from tests.containers import make_services
from tests.exporters.tasks import make_task, make_task_with_image
from tests.verifiers.edits import make_edit
from verifiers.inspection import InspectionFinding
from verifiers.strength import EditKind, EditOutcome, OracleStrength, summarize_edits

QUICK_FORMATS = ("harbor", "swebench")
"""Formats whose bundles are audited in every run of the tests; the file list is checked alike in all of them."""
FORMATS = [form if form in QUICK_FORMATS else pytest.param(form, marks=pytest.mark.slow) for form in exporters.FORMATS]


def write_test_bundle(folder: Path, form: str) -> Path:
    """A bundle of one task of which there is no image."""
    services = make_services(folder)
    task = make_task(services, folder, image="mergemill-test/nowhere:1")
    exporters.export_tasks(form, [task], {}, folder / "out", services)
    return folder / "out"


def _append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


FAULTS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a-changed-file": (lambda out: _append(next(out.rglob("eval.sh"))), "changed"),
    "a-missing-file": (lambda out: next(out.rglob("gold.patch")).unlink(), "missing"),
    "a-file-more": (lambda out: (out / "extra.txt").write_text("x"), "not part of the bundle"),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", FAULTS)
def test_a_bundle_that_differs_from_its_manifest_is_rejected(name: str, form: str, tmp_path: Path) -> None:
    fault, what = FAULTS[name]
    fault(write_test_bundle(tmp_path, form))
    done = run_mergemill("audit", "out", "--json", cwd=tmp_path, DOCKER_HOST="unix:///nowhere")
    assert done.exit_code == 3
    assert (done.json["clean"], done.json["tasks"], done.json["format"]) == (False, 1, form)
    assert [(row["kind"], row["description"]) for row in done.json["findings"]] == [("file", what)]
    assert "1 finding" in done.stderr
    assert what in run_mergemill("audit", "out", cwd=tmp_path).stdout


def test_a_changed_record_is_found_although_its_hash_in_the_manifest_was_updated(tmp_path: Path) -> None:
    out = write_test_bundle(tmp_path, "harbor")
    record = next(out.rglob("record.json"))
    record.write_text(record.read_text().replace("ada/words", "eve/words"))
    content = json.loads((out / "manifest.json").read_text())
    content["files"][record.relative_to(out).as_posix()] = exporters.manifest.hash_file(record)
    (out / "manifest.json").write_text(json.dumps(content))
    done = run_mergemill("audit", "out", cwd=tmp_path)
    assert (done.exit_code, done.stderr.count("\n")) == (3, 1)
    assert "is not the task whose id the manifest has" in done.stderr


@pytest.mark.docker
@pytest.mark.parametrize("form", FORMATS)
def test_a_task_without_an_image_on_this_engine_is_skipped(form: str, tmp_path: Path) -> None:
    write_test_bundle(tmp_path, form)
    files, task = run_mergemill("audit", "out", "--json", cwd=tmp_path).lines
    assert (files["clean"], task["task"], task["clean"], task["probes"]) == (True, "ada__words-1.bugfix", False, [])
    assert task["skipped"] == "the image mergemill-test/nowhere:1 is not here"
    assert run_mergemill("audit", "out/manifest.json", cwd=tmp_path).exit_code == 0


@pytest.mark.docker
def test_a_bundle_needs_neither_database_nor_clone(tmp_path: Path) -> None:
    services = make_services(tmp_path)
    task = make_task_with_image(services, tmp_path / "clone")
    exporters.export_tasks("swebench", [task], {}, tmp_path / "out", services)
    (tmp_path / "clone" / "ada__words-1").rename(tmp_path / "gone")
    done = run_mergemill("audit", "out", "--json", cwd=tmp_path)
    assert done.exit_code == 0, done.stderr
    content = done.lines[1]
    assert (content["clean"], content["findings"], content["strength"]["score"]) == (True, [], 1.0)
    assert {row["name"]: row["value"] for row in content["probes"]}["source-forges"] == 0.0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["nothing-like-it"], "there is no database"),
        (["./nowhere"], "there is no folder nowhere (audit takes a task or the folder of an exported bundle)"),
        (["empty"], "empty has no manifest.json"),
        (["torn"], "torn has no manifest.json"),
    ],
)
def test_an_unknown_target_is_reported_in_one_line(words: list[str], line: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "manifest.json").write_text('{"kind": "mergemill-bundle", "files": [')
    done = run_mergemill("audit", *words, cwd=tmp_path)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert line in done.stderr


def test_findings_of_a_task_are_printed_with_their_place(capsys: pytest.CaptureFixture[str]) -> None:
    leak = InspectionFinding(kind="image", location="/testbed/gold.patch", description="the gold patch")
    result = TaskAudit(
        task="ada__greet-1.bugfix",
        id="0" * 64,
        image="greet:1",
        clean=False,
        skipped=None,
        findings=[asdict(leak)],
        probes=[],
        strength=asdict(OracleStrength(fail_to_pass=2, controls=1)),
    )
    audit_command._print_task(result, as_json=False)
    printed = capsys.readouterr().out
    assert "ada__greet-1.bugfix: 1 finding (greet:1)" in printed
    assert "/testbed/gold.patch  the gold patch" in printed
    assert printed.endswith("strength 1 of 2 FAIL_TO_PASS tests have a sabotaged test\n")


def test_missed_faults_and_refused_rewrites_are_printed_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edits = [
        make_edit(EditKind.HUNK, EditOutcome.PASSED, first_line=10, last_line=12),
        make_edit(EditKind.HUNK, EditOutcome.DETECTED, "tests/test_cart.py::test_a"),
        make_edit(EditKind.HUNK, EditOutcome.NOT_BUILT, "tests/test_cart.py::test_a"),
        make_edit(EditKind.MUTANT, EditOutcome.PASSED, detail="a < b became a <= b"),
        make_edit(EditKind.VARIANT, EditOutcome.DETECTED, "tests/test_cart.py::test_b", detail="white space differs"),
        make_edit(EditKind.VARIANT, EditOutcome.PASSED),
    ]
    task = make_task(make_services(tmp_path), tmp_path)
    strength = asdict(summarize_edits(task, edits))
    result = TaskAudit(
        task=task.name, id=task.id, image="", clean=True, skipped=None, findings=[], probes=[], strength=strength
    )
    audit_command._print_task(result, as_json=False)
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    measured = (
        "0.33: 1 of 2 omitted hunks, 0 of 1 mutant detected, 1 of 2 rewrites accepted, untested: src/cart.py:10-12"
    )
    controls = format_strength(asdict(summarize_edits(task)))
    assert printed == [
        f"{task.name}: no findings ()",
        f"strength {measured}; {controls}",
        "place weakness",
        "src/cart.py:10-12 no test misses this hunk",
        "src/cart.py:3 no test detects: a < b became a <= b",
        "src/cart.py:3 a rewrite is refused (white space differs): tests/test_cart.py::test_b",
    ]
