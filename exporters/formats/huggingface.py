"""Hugging Face: a data set folder with numbered parquet files by split, and a card (`README.md`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from core.text import format_count, format_probability
from exporters import rows, task_files
from exporters.bundle_writer import write_file
from exporters.export_format import ExportFormat
from exporters.task_folder import write_task_folder
from exporters.verifier_files import explain_ungradable
from taskdb.queries.evidence import SHOWN_BOUND
from taskdb.records import Certificate, TestOrigin
from taskdb.records.verdicts import EVIDENCE
from training_data.card import Card, Section, render_card, render_table
from training_data.parquet import ParquetShards

if TYPE_CHECKING:
    from backends.services import Services
    from exporters.item import ExportItem

TEXT_COLUMNS = ("hints_text", "version", "prompt", "patch", "test_patch", "setup_patch", "image_digest")
LIST_COLUMNS = ("FAIL_TO_PASS", "PASS_TO_PASS")
SCHEMA = pa.schema(
    [
        *((name, kind) for name, kind in rows.TASK_TYPES.items()),
        *((name, pa.string()) for name in TEXT_COLUMNS),
        *((name, pa.list_(pa.string())) for name in LIST_COLUMNS),
        *rows.FACT_TYPES.items(),
    ]
)
BOUNDS = ("strength", "control_bound", "flaky_bound", "underspecified", "unfair_tests")
"""Facts whose values the card summarises."""
VERDICT_SCORES = frozenset(EVIDENCE)
"""Those that the judge gives."""
MAX_CELL = 100
"""Characters of a name in the card; a longer name is cut."""
_PLAIN_CELL = re.compile(r"(?!.*www\.)[A-Za-z0-9][A-Za-z0-9 .+#/()-]*", re.IGNORECASE)
BINARY_NOTE = "{}: not UTF-8, so bytes are replaced in this column; the task's folder has the patch"

TITLE = "Software-engineering tasks made from merged changes"
SUMMARY = "{tasks} of {repositories}, made by mergemill. Each has an image, a hidden verifier and a gold submission."
CONTENTS = """\
The licence of a row is that of its repository, and holds for the code in its patches and images.

`split`: whole repositories are in one split. `family`: rows of one family come from one change."""
VERIFICATION = """\
Tests ran in the row's image without network, as an unprivileged user. FAIL_TO_PASS tests failed with the test patch
alone and passed with the gold patch; PASS_TO_PASS tests passed in both; tests that varied between repeated runs were
left out. Kinds with another oracle (performance, test-writing, review) are graded by that oracle. Certificates:
{certified}. With a certificate, the finished task gave the gold submission a reward of 1 and an empty one 0.

A model wrote the tests of {written}: see the column `tests` (`human` or `model-written`)."""
MEANINGS = """\
- `strength`: share of the faults in the gold patch (a hunk left out, a mutant of a line) that the tests detect, in an
  audit. `untested_hunks` names the hunks that no test misses.
- `control_bound`: probability of passing for a submission that forges test results, and has to choose which tests are
  true by a feature of their values.
- `flaky_bound`: 95 % upper bound on the probability that the gold submission fails in one grading. It follows from the
  number of gradings: after 3 without a failure it is 0.56, and no sign of a defect. Above are the gradings
  of the certificates, with the largest bound where one failed, or where it is below {shown_bound:g}.
- `n_weak_tests`: tests in the lists that are skipped without a package, are reported twice, or stand in a file that
  asserts nothing.
- `underspecified`, `unfair_tests`: a judge's scores of a statement that leaves out what the tests require. Compare rows
  by them. A value alone is no rate of faults: the scores were calibrated on one labelled set, half of whose rows have
  unfair tests."""
USE = """\
```python
from datasets import load_dataset
rows = load_dataset("this/repository", split="{split}")

from mergemill_reward import compute_reward, read_gold   # mergemill_reward.py of this repository; needs Docker
assert compute_reward(rows[0], read_gold(rows[0])) == 1
assert compute_reward(rows[0], "") == 0
```

`verifier` is a base64 .tar.gz. It runs in a fresh container of `image` without network; None is a failed evaluation,
not a 0.
A row without an image is a review, which needs no container.

`patch`, `test_patch`, `setup_patch`, `gold_submission` and `verifier` must be hidden from agents."""


@dataclass
class CardFigures:
    """Figures of a data set, collected row by row."""

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(kind, split) -> rows."""
    languages: Counter[str] = field(default_factory=Counter)
    licenses: Counter[str] = field(default_factory=Counter)
    repositories: set[str] = field(default_factory=set)
    bounds: dict[str, list[float]] = field(default_factory=dict)
    """Fact -> [number of rows that have it, sum, minimum, maximum]."""
    certified: int = 0
    gradings: int = 0
    """Gradings of gold in the certificates."""
    failed_gradings: int = 0
    """Those in which gold did not earn 1."""
    written: int = 0
    """Rows whose tests a model wrote."""

    @property
    def total(self) -> int:
        """Number of rows."""
        return sum(self.kinds.values())

    def add(self, row: Mapping[str, Any], certificate: Certificate | None) -> None:
        """Count a row, and the gradings of its certificate."""
        self.kinds[row["kind"], row["split"]] += 1
        self.languages[row["language"]] += 1
        self.licenses[row["license"]] += 1
        # GitHub ignores case in names of repositories.
        self.repositories.add(row["repo"].lower())
        self.certified += row["certificate"] is not None
        gold = certificate.gold if certificate else ()
        self.gradings += len(gold)
        self.failed_gradings += sum(value != 1 for value in gold)
        self.written += row["tests"] != TestOrigin.HUMAN
        for name in BOUNDS:
            if (value := row[name]) is not None:
                count, total, low, high = self.bounds.get(name, [0, 0.0, value, value])
                self.bounds[name] = [count + 1, total + value, min(low, value), max(high, value)]

    def describe_bound(self, name: str) -> str:
        """Return number, average and range of a fact's values; of the failures of gold, the gradings that were made."""
        if name not in self.bounds or (name == "flaky_bound" and not self.gradings):
            return "not known for any row"
        count, total, low, high = self.bounds[name]
        if name == "flaky_bound":
            return self._describe_gold(high)
        if name == "control_bound":
            average, least, most = map(format_probability, (total / count, low, high))
            return f"{count:.0f} rows: mean {average}, {least} to {most}"
        # An average of scores that rest on no finding would be read as a share of faulty rows.
        share = "" if name in VERDICT_SCORES else f"mean {total / count:.3f}, "
        return f"{count:.0f} rows: {share}{low:.3f} to {high:.3f}"

    def _describe_gold(self, highest: float) -> str:
        """Return the gradings in which gold earned 1, and the highest bound of a row where that is informative."""
        n_passed = self.gradings - self.failed_gradings
        seen = f"gold earned 1 in {n_passed} of {format_count(self.gradings, 'grading')}"
        if not self.failed_gradings and highest >= SHOWN_BOUND:
            return seen
        return f"{seen}, and fails in a row's with a probability of at most {format_probability(highest)}"


def write_huggingface(items: Iterable[ExportItem], folder: Path, services: Services) -> None:
    """Write the rows by split, the card, the reward module and a folder per task."""
    figures = CardFigures()
    with ExitStack() as stack:
        shards = {
            split: stack.enter_context(ParquetShards(folder / "data" / split, SCHEMA, numbered=True))
            for split in ("train", "test")
        }
        for item in items:
            row, notes = build_huggingface_row(item, services)
            item.notes.extend(notes)
            shards[row["split"]].add(row)
            figures.add(row, item.certificate)
            write_task_folder(item, folder / item.folder, services)
    write_file(folder / "README.md", render_card(build_card(figures)))
    rows.write_reward_module(folder)


def build_huggingface_row(item: ExportItem, services: Services) -> tuple[dict[str, Any], list[str]]:
    """Return the row, and notes on text that is not complete in it."""
    task = item.task
    training, notes = rows.build_training_row(item, services)
    patches = {
        "patch": services.artifacts.get(task.gold_patch),
        "test_patch": services.artifacts.get(task.test_patch),
        "setup_patch": services.artifacts.get(task.setup_patch) if task.setup_patch else b"",
    }
    texts = {name: content.decode(errors="replace") for name, content in patches.items()}
    row, replaced = rows.make_valid_row(
        {
            "hints_text": task.hints,
            "version": task.version,
            "image_digest": task.image_digest,
            "FAIL_TO_PASS": task_files.list_fail_to_pass(task),
            "PASS_TO_PASS": list(task.PASS_TO_PASS),
        }
    )
    # Parquet's columns are text; a patch that does not survive the decoding is noted.
    binary = [BINARY_NOTE.format(name) for name, content in patches.items() if texts[name].encode() != content]
    return training | texts | row | {"prompt": rows.build_prompt(training)}, [*notes, *replaced, *binary]


def build_card(figures: CardFigures) -> Card:
    """Return the data set's card."""
    splits = [split for split in ("train", "test") if any(s == split for _, s in figures.kinds)]
    kinds = [
        (kind, *(str(figures.kinds[kind, split]) for split in splits))
        for kind in sorted({kind for kind, _ in figures.kinds})
    ]
    summary = SUMMARY.format(
        tasks=format_count(figures.total, "task"),
        repositories=format_count(len(figures.repositories), "repository"),
    )
    verification = VERIFICATION.format(
        certified=f"{figures.certified} of {figures.total}",
        written=f"{figures.written} of {figures.total}",
    )
    bounds = render_table(("bound", ""), [(f"`{name}`", figures.describe_bound(name)) for name in BOUNDS])
    contents = [
        _render_table(("kind", *splits), kinds),
        _render_counts("language", figures.languages),
        _render_counts("licence", figures.licenses),
        CONTENTS,
    ]
    return Card(
        title=TITLE,
        tags=("code", "software-engineering", "reinforcement-learning", "mergemill"),
        licenses=figures.licenses,
        rows=figures.total,
        data_files={split: f"data/{split}-*.parquet" for split in splits},
        sections=(
            Section("", [summary]),
            Section("Contents", contents),
            Section("How the tasks were verified", [verification, bounds, MEANINGS.format(shown_bound=SHOWN_BOUND)]),
            Section("Use", [USE.format(split=splits[0])]),
        ),
    )


def _render_cell(text: str) -> str:
    """Return the text itself where it is plain, else as code, which is neither Markdown nor HTML."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    cell = " ".join(printable.replace("|", "/").replace("`", "'").split())[:MAX_CELL]
    return cell if _PLAIN_CELL.fullmatch(cell) else f"`{cell or '-'}`"


def _render_counts(title: str, counts: Mapping[str, int]) -> str:
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0] or ""))
    return _render_table((title, "tasks"), [(name or "unknown", str(count)) for name, count in ranked])


def _render_table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; text of repositories stays in its cell, and makes no link, image or HTML."""
    return render_table(header, [[_render_cell(cell) for cell in line] for line in lines])


FORMATS = {"huggingface": ExportFormat(write=write_huggingface, explain_exclusion=explain_ungradable)}
