"""TAP is read as its writers mean it: Test::More, which runs here, and a recording of tape."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaluation.reports import junit
from guest.harness.reports.core import stabilize_name
from guest.harness.reports.main import read_results
from tests.evaluation.tap_forms import FORMS, TapForm, render_table
from tests.evaluation.test_reports import write_files

HERE = Path(__file__).parent
TREE = HERE / "trees/tape-titles"
TITLES: list[str] = json.loads((TREE / "test/titles.json").read_text(encoding="utf-8"))
PAGE = HERE.parents[1] / "docs/guide/mine/languages.md"

# What each file of Perl calls for every title, and the status that prove has for it.
CALLS = {
    "pass": ("ok(1, $title);", "passed"),
    "fail": ("ok(0, $title);", "failed"),
    "todo": ("TODO: { local $TODO = $title; ok(0, $title); }", "xfailed"),
    "skip": ("SKIP: { skip($title, 1); }", "skipped"),
    "subtest": ("subtest $title => sub { ok(1, $title); done_testing(); };", "passed"),
}
PROGRAM = """use strict; use warnings; use JSON::PP;
use open qw(:std :encoding(UTF-8));
use Test::More;
our $TODO;
local $/;
for my $title (@{JSON::PP->new->decode(<STDIN>)}) { @CALL@ }
done_testing();
"""


def read_tap(folder: Path, outputs: dict[str, str], tree: Sequence[str]) -> list[tuple[str, str]]:
    """Return (id, status) of the tests in the order of their output."""
    content = read_results("tap", *write_files(folder, outputs, dict.fromkeys(tree, ""))).to_xml()
    return [(test, outcome.status.value) for test, outcome in junit.parse_junit(content, []).outcomes.items()]


@pytest.mark.parametrize("call", CALLS)
def test_titles_of_perl_are_read_as_they_are(call: str, tmp_path: Path) -> None:
    code, status = CALLS[call]
    program = PROGRAM.replace("@CALL@", code)
    titles = json.dumps(TITLES, ensure_ascii=False)
    run = subprocess.run(["perl", "-e", program], input=titles, capture_output=True, text=True, check=False)
    names = [f"(test {number})" if call == "skip" else title for number, title in enumerate(TITLES, 1)]
    if call == "subtest":
        names = [name for title in TITLES for name in (f"{title} > {title}", title)]
    expected = [(f"t/a.t::{stabilize_name(name)}", status) for name in names]
    assert read_tap(tmp_path, {"t/a.t": run.stdout}, ["t/a.t"]) == expected


def test_titles_of_tape_are_read_as_they_are(tmp_path: Path) -> None:
    output = (HERE / "recordings/tape-titles/test/titles.js.tap").read_text(encoding="utf-8")
    statuses = ("passed", "failed", "skipped", "skipped", "xfailed", "passed")
    expected = []
    for place, heading in enumerate(TITLES):
        for offset, status in enumerate(statuses, 1):
            name = f"{heading} > {TITLES[(place + offset) % len(TITLES)]}"
            expected.append((f"test/titles.js::{stabilize_name(name)}", status))
    assert len(expected) > 200
    assert read_tap(tmp_path, {"test/titles.js.tap": output}, ["test/titles.js"]) == expected


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.about)
def test_a_form_of_tap_is_read_as_the_table_says(form: TapForm, tmp_path: Path) -> None:
    points = sum(line.startswith(("ok", "not ok")) for line in form.lines)
    output = "\n".join((*form.lines, f"1..{points}", ""))
    expected = [(f"{form.file}::{title}", status) for title, status in form.results]
    assert read_tap(tmp_path, {form.file: output}, [form.file]) == expected


def test_the_page_has_the_table_of_all_forms() -> None:
    assert render_table() in PAGE.read_text(encoding="utf-8")
