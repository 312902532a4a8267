"""Each form of predictions and of test lists is read, or refused by name, by every reader; the pages list them."""

from __future__ import annotations

import gzip
import importlib.machinery
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.errors import InputError
from core.json_files import read_documents
from miner.datasets import read_rows
from miner.instances import InstanceRow, read_instance_rows
from samplers.imports.foreign import ForeignRollout
from samplers.imports.predictions import read_fields, read_prediction_rows
from samplers.imports.reading import read_foreign_file
from tests.docs.test_examples import ROOT
from tests.input_forms import LIST_FORMS, PATCH, PREDICTION_FORMS, ROW, ListForm, PredictionForm

FIELDS = {
    "instance_id": "acme__widget-1",
    "repo": "acme/widget",
    "base_commit": "a" * 40,
    "patch": PATCH,
    "test_patch": PATCH.replace("a.py", "test_a.py"),
    "problem_statement": "It is wrong.",
}
SMITH = {name: value for name, value in FIELDS.items() if name != "base_commit"} | {"repo": "x/acme__widget.aaaaaaaa"}
FORMATS = {"swebench": FIELDS, "swe-rebench": FIELDS, "swe-smith": SMITH}


def read_predictions(path: Path) -> list[tuple[str, bytes | None]]:
    rows = []
    for row in read_prediction_rows(path):
        if row.problem:
            raise InputError(row.problem)
        fields = read_fields(row.value)
        assert fields.form == "patch"
        rows.append((fields.instance, fields.content))
    return rows


@pytest.mark.parametrize("form", PREDICTION_FORMS, ids=lambda form: form.name)
def test_a_form_of_predictions_is_read_or_refused_once(form: PredictionForm, tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(form.content)
    imported = [rollout for _, _, rollout in read_foreign_file(tmp_path / "p")]
    if isinstance(form.expected, str):
        with pytest.raises(InputError, match=form.expected):
            read_predictions(tmp_path / "p")
        assert len(imported) == 1
        # A document that is no prediction may be a rollout of any other format.
        assert not isinstance(imported[0], ForeignRollout) or form.name == "no name"
    else:
        assert read_predictions(tmp_path / "p") == list(form.expected)
        assert [
            isinstance(rollout, ForeignRollout) and (rollout.instances[0], rollout.submission) for rollout in imported
        ] == [(name, patch or b"") for name, patch in form.expected]


@pytest.mark.parametrize("format_name", [None, *FORMATS])
@pytest.mark.parametrize("name", ["FAIL_TO_PASS", "PASS_TO_PASS"])
@pytest.mark.parametrize("form", LIST_FORMS, ids=lambda form: form.name)
def test_a_form_of_a_list_is_read_or_refused(
    form: ListForm, name: str, format_name: str | None, tmp_path: Path
) -> None:
    def rename(text: str) -> str:
        replaced = text.replace("FAIL_TO_PASS", name).replace("fail_to_pass", name.lower())
        return replaced if name == "FAIL_TO_PASS" else replaced.replace("f2p", "p2p")

    row = json.dumps(FORMATS[format_name or "swebench"])
    (tmp_path / "rows.jsonl").write_text(f"{row[:-1]}, {rename(form.fields)}}}\n")
    if format_name is None:
        [(_, instance)] = read_instance_rows(tmp_path / "rows.jsonl")
    else:
        [(_, instance)] = read_rows(tmp_path / "rows.jsonl", format_name)
    if isinstance(form.expected, str):
        assert str(instance).endswith(f":1: {rename(form.expected)}")
    else:
        assert isinstance(instance, InstanceRow), instance
        assert getattr(instance, name) == form.expected


@pytest.mark.parametrize(
    ("suffix", "template"),
    [
        (".jsonl", "ONE\nTWO\n"),
        (".json", "ONE\nTWO\n"),
        (".json", "[ONE, TWO]"),
        (".jsonl", "[\nONE,\nTWO\n]\n"),
        (".json", '{"acme__widget-1": ONE, "acme__widget-2": TWO}'),
        (".json", '{"acme__widget-1": NAMELESS, "acme__widget-2": TWO}'),
        (".jsonl", "INDENTED\nTWO\n"),
        (".jsonl", "\ufeffONE\n\ufeffTWO\n"),
    ],
)
@pytest.mark.parametrize("is_compressed", [False, True])
def test_rows_of_task_sets_are_read_from_every_form_of_file(
    suffix: str, template: str, is_compressed: bool, tmp_path: Path
) -> None:
    rows = {
        "ONE": json.dumps(FIELDS),
        "TWO": json.dumps(FIELDS | {"instance_id": "acme__widget-2"}),
        "NAMELESS": json.dumps({name: value for name, value in FIELDS.items() if name != "instance_id"}),
        "INDENTED": json.dumps(FIELDS, indent=2),
    }
    for word, text in rows.items():
        template = template.replace(word, text)
    path = tmp_path / f"rows{suffix}{'.gz' * is_compressed}"
    path.write_bytes(gzip.compress(template.encode()) if is_compressed else template.encode())
    for read in (list(read_instance_rows(path)), list(read_rows(path, "swebench"))):
        assert [row.instance_id if isinstance(row, InstanceRow) else row for _, row in read] == [
            "acme__widget-1",
            "acme__widget-2",
        ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"patch": None}, "field patch is null"),
        ({"patch": 3}, "field patch is not a text"),
        ({"repo": ["a"]}, "field repo is not a text"),
        ({"version": ["1"]}, "field version is not a text"),
        ({"patch": ...}, "field patch is missing"),
    ],
    ids=repr,
)
def test_a_malformed_field_is_named_in_our_words(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    row = {name: value for name, value in (FIELDS | change).items() if value is not ...}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    [(_, error)] = read_instance_rows(tmp_path / "rows.jsonl")
    assert str(error) == f"{tmp_path / 'rows.jsonl'}:1: {problem}"


def test_null_texts_and_fractions_of_dates_are_read(tmp_path: Path) -> None:
    row = FIELDS | {"test_patch": None, "problem_statement": None, "hints_text": None, "created_at": 1709287200.5}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    [(_, instance)] = read_instance_rows(tmp_path / "rows.jsonl")
    assert isinstance(instance, InstanceRow), instance
    assert (instance.test_patch, instance.problem_statement) == ("", "")
    assert instance.created_date == "2024-03-01T10:00:00+00:00"


def test_lines_that_are_cut_off_cost_no_other_line(tmp_path: Path) -> None:
    lines = [ROW[:40] + ",", ROW, '{"a": ', ROW, "{", '{"a": "x', ROW, "[", ""]
    (tmp_path / "p.jsonl").write_text("\n".join(lines).replace("PATCH", '""'))
    documents = list(read_documents(tmp_path / "p.jsonl"))
    assert [(document.line, bool(document.problem)) for document in documents] == [
        (n, line != ROW) for n, line in enumerate(lines[:-1], 1)
    ]


def test_a_byte_that_is_no_text_costs_its_line_alone(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_bytes(b'{"a": "\xff"}\n{"a": 1}\n')
    bad, good = read_documents(tmp_path / "p.jsonl")
    assert (bad.problem, good.value) == ("it is not UTF-8", {"a": 1})


def load_script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("input_forms_script", str(ROOT / "scripts" / "input-forms"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_the_pages_list_the_forms() -> None:
    assert load_script().main(["--check"]) == 0, "run scripts/input-forms"
