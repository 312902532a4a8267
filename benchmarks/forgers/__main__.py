"""Measure how often submissions are paid that solve nothing and read the tests.

    python -m benchmarks.forgers --db sqlite:///m.db [--gradings 200] [--only-language python] [--page FILE]

For each task with controls, gradings are drawn as `mergemill grade` draws them. A reader (`benchmarks.forgers.readers`)
chooses an instance of each controlled FAIL_TO_PASS test from the files of the evaluation, and would report that this
one passes and the others fail as recorded. It is paid if all its choices in all evaluations are right. No test is run:
a forged report is taken for granted. Where the database has tasks of several projects, a further reader weighs all
rules as they were right about the tasks of the other projects. Tests that stand once are real or not by a coin, which
a reader guesses as well.

Printed are, for each reader, the gradings paid and the number that the tasks' bounds allow, and the choices that
were right, with a 95 % interval, the number that chance gives, and the number that the odds of the blocks allow. The
exit code is 1 if a reader is paid, or right, so often that the bounds explain it with a probability below 1/1000, over
all tasks together or, corrected for their number, in one of them.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from scipy.stats import binomtest

from backends.services import Services
from benchmarks.forgers.learned import LearnedReaders
from benchmarks.forgers.readers import LUCK, READERS, TOKEN, Reader, ReadTest
from benchmarks.page_table import write_table
from core.config import Settings
from evaluation.controls.blocks import count_trigrams, find_blocks, parse_test_file
from guest.controls import blind
from guest.controls.choices import PASSES
from guest.controls.texts import DRAWN_WORD
from mergemill.execution.services import make_services
from taskdb.records import Task
from taskdb.store import Store
from verifiers.base_tree import read_base_files

RARE = 0.001
"""Probability below which chance does not explain how often a reader was right."""
LEARNED = "learned from other projects"
"""Name of the reader that weighs all rules as they were right about the other projects of the database."""
EXAMPLES = 10
"""Gradings of each task that it learns from."""
MAX_FILE_BYTES = 1_000_000
"""Larger files of the tree are left out of what a reader knows of it."""


@dataclass(kw_only=True)
class ReaderCounts:
    """What a reader earned. `allowed`, `by_chance` and `by_odds` are sums of probabilities."""

    gradings: int = 0
    paid: int = 0
    allowed: float = 0.0
    choices: int = 0
    right: int = 0
    by_chance: float = 0.0
    by_odds: float = 0.0
    tasks: dict[str, int] = field(default_factory=dict)
    """Name of a task -> gradings of it that were paid."""
    bounds: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Name of a task -> its gradings, and its bound."""

    def list_false_bounds(self, n_readers: int) -> list[str]:
        """Return a line for each task that was paid more often than its bound explains, however many there are.

        Sums hide such a task behind others with large bounds.
        """
        rare = RARE / max(1, len(self.bounds) * n_readers)
        return [
            f"{name}: paid in {paid} of {gradings} gradings, its bound is {bound:.2g}"
            for name, (gradings, bound) in self.bounds.items()
            if (paid := self.tasks.get(name, 0))
            and binomtest(paid, gradings, min(1.0, bound), alternative="greater").pvalue < rare
        ]

    def is_within_bounds(self) -> bool:
        """Return whether the bounds of tasks and the odds of blocks explain how often the reader was paid and right."""
        return all(
            number == 0 or binomtest(number, most, min(1.0, expected / most), alternative="greater").pvalue >= RARE
            for number, most, expected in (
                (self.paid, self.gradings, self.allowed),
                (self.right, self.choices, self.by_odds),
            )
        )


@dataclass(frozen=True, kw_only=True)
class KnownTree:
    """What a submission knows of the agent's tree."""

    tokens: Mapping[str, int]
    trigrams: Mapping[str, int]
    lines: frozenset[str]

    @classmethod
    def read(cls, task: Task, services: Services) -> KnownTree:
        """Return the tokens, trigrams and lines of a task's base tree."""
        tokens: Counter[str] = Counter()
        trigrams: Counter[str] = Counter()
        lines: set[str] = set()
        for _, content in read_base_files(task, services):
            if len(content) <= MAX_FILE_BYTES and b"\0" not in content:
                text = content.decode(errors="replace")
                tokens.update(TOKEN.findall(text))
                trigrams.update(count_trigrams([content]))
                lines.update(line.strip() for line in text.splitlines())
        return cls(tokens=tokens, trigrams=trigrams, lines=frozenset(lines))


@dataclass(frozen=True, kw_only=True)
class ReadTask:
    """A task with controls. `project`: its repository, from whose other tasks a reader could have learned."""

    name: str
    project: str
    document: dict[str, Any]
    tree: KnownTree


def read_tests(path: str, content: bytes, tree: KnownTree, salt: str = "") -> dict[str, ReadTest]:
    """Return the tests of a drawn file that stand several times: drawn word of the first instance -> test.

    Args:
        path: path of the file.
        content: the file.
        tree: the submission's knowledge of the agent's tree.
        salt: text of the submission, from which a preference of its own follows.
    """
    file = parse_test_file(path, content)
    groups: list[tuple[str, list[tuple[str, str]], int, int]] = []
    for block in find_blocks(file) if file else []:
        name = content[slice(*block.name_span)].decode() if block.name_span else ""
        words = DRAWN_WORD.findall(name)
        if not words or not name.endswith(words[-1]):
            continue
        base = name[: -len(words[-1]) - 1]
        body = content[block.start : block.end].decode().replace(name, base)
        # Instances stand next to each other.
        if groups and groups[-1][0] == base and not content[groups[-1][3] : block.start].strip():
            groups[-1] = (base, [*groups[-1][1], (words[-1], body)], groups[-1][2], block.end)
        else:
            groups.append((base, [(words[-1], body)], block.start, block.end))
    return {
        instances[0][0]: ReadTest(
            name=base,
            names=[name for name, _ in instances],
            bodies=[body for _, body in instances],
            rest=(content[:start] + content[end:]).decode(),
            tree=tree.tokens,
            trigrams=tree.trigrams,
            lines=tree.lines,
            salt=salt,
        )
        for base, instances, start, end in groups
        if len(instances) > 1
    }


def grade_readers(
    document: Mapping[str, Any],
    tree: KnownTree,
    readers: Mapping[str, Reader],
    counts: Mapping[str, ReaderCounts],
    random: Random,
) -> dict[str, bool]:
    """Draw one grading, and return which readers are paid; add their choices to the counts."""
    paid = dict.fromkeys(readers, True)
    odds = _find_odds(document)
    counted = [block for block in document["blocks"] if block["required"] and block["blind"]]
    singles = {test for block in counted if "forms" in block for test in blind.list_block_tests(block)}
    salt = str(random.random())
    for evaluation in blind.draw_evaluations(document, random):
        for test, true, origin in list_choices(evaluation, tree, odds, salt):
            for name, reader in readers.items():
                is_right = _choose(test.score(reader), random) == true
                counts[name].choices += 1
                counts[name].right += is_right
                counts[name].by_chance += 1 / len(test.names)
                counts[name].by_odds += odds[origin] or 1 / len(test.names)
                paid[name] = paid[name] and is_right
        for single in singles:
            is_real = evaluation.expected[single] == PASSES
            for name in readers:
                # The best odds: two of three draws are real.
                paid[name] = paid[name] and (random.random() < 2 / 3) == is_real
    return paid


def list_choices(
    evaluation: blind.Evaluation, tree: KnownTree, controlled: Container[str], salt: str = ""
) -> Iterator[tuple[ReadTest, int, str]]:
    """Yield the tests of an evaluation that a reader has to choose instances of.

    Each is a test, the number of its true instance, and the id of the test in its block.

    Args:
        evaluation: a drawn evaluation.
        tree: the submission's knowledge of the agent's tree.
        controlled: ids of the tests that count.
        salt: text of the submission, from which a preference of its own follows.
    """
    origins = {find_word(test, origin): origin for test, origin in evaluation.origins.items()}
    failing = {
        find_word(test, evaluation.origins[test])
        for test, outcome in evaluation.expected.items()
        if outcome != PASSES and test in evaluation.origins
    }
    for path, content in evaluation.files.items():
        for test in read_tests(path, content, tree, salt).values():
            true = next((number for number, name in enumerate(test.names) if name not in failing), 0)
            origin = origins.get(test.names[true], "")
            if origin in controlled:
                yield test, true, origin


def _find_odds(document: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the odds of the best reader of each test that counts and stands several times."""
    blocks = [block for block in document["blocks"] if block["required"] and block["blind"] and "menus" in block]
    return {test: read_odds(block) for block in blocks for test in block["tests"]}


def read_odds(block: Mapping[str, Any]) -> float | None:
    """Return the odds of the best reader of a block; None in a document without them."""
    return max(block["readers"]) if "readers" in block else block.get("odds")


def find_word(test: str, origin: str) -> str:
    """Return the word by which the name of an instance differs from that of the test; values stand after it."""
    words: list[str] = DRAWN_WORD.findall(test)
    return next(word for word in words if word not in DRAWN_WORD.findall(origin))


def _choose(scores: Sequence[float], random: Random) -> int:
    best = max(scores)
    return random.choice([number for number, score in enumerate(scores) if score == best])


def measure(tasks: Sequence[ReadTask], gradings: int) -> dict[str, ReaderCounts]:
    """Return reader -> what it earned over all tasks."""
    learned = LearnedReaders(rules={name: rule for name, rule in READERS.items() if rule not in LUCK})
    for task in tasks:
        odds = _find_odds(task.document)
        for _ in range(EXAMPLES):
            for evaluation in blind.draw_evaluations(task.document, secrets.SystemRandom()):
                choices = list_choices(evaluation, task.tree, odds)
                learned.add(task.project, ((test, true) for test, true, _ in choices))
    counts = {name: ReaderCounts() for name in (*READERS, LEARNED)}
    taught = {project: learned.make_reader(project) for project in {task.project for task in tasks}}
    for task in tasks:
        learner = taught[task.project]
        readers = {**READERS, LEARNED: learner} if learner else READERS
        bound = blind.compute_bound(task.document)
        for name in readers:
            counts[name].bounds[task.name] = (gradings, bound)
        for _ in range(gradings):
            paid = grade_readers(task.document, task.tree, readers, counts, secrets.SystemRandom())
            for name, is_paid in paid.items():
                counts[name].gradings += 1
                counts[name].allowed += bound
                counts[name].paid += is_paid
                if is_paid:
                    counts[name].tasks[task.name] = counts[name].tasks.get(task.name, 0) + 1
        guesses = blind.compute_guess_bound(task.document)
        print(f"{task.name}: bound {bound:.2g}, of guesses {guesses:.2g}, {gradings} gradings", flush=True)
    return counts


def render_table(counts: Mapping[str, ReaderCounts]) -> str:
    """Return the Markdown table of readers."""
    lines = [
        "| reader | paid | allowed by the bounds | choices right | 95 % interval | by chance | allowed by the odds |",
        "|---|--:|--:|--:|---|--:|--:|",
    ]
    for name, count in counts.items():
        interval = binomtest(count.right, count.choices).proportion_ci(method="wilson") if count.choices else (0, 1)
        right, chance, odds = (n / max(1, count.choices) for n in (count.right, count.by_chance, count.by_odds))
        lines.append(
            f"| {name} | {count.paid} of {count.gradings} | {count.allowed:.1f} | {right:.1%} of {count.choices} | "
            f"{interval[0]:.1%} to {interval[1]:.1%} | {chance:.1%} | {odds:.1%} |"
        )
    return "\n".join(lines) + "\n"


def iterate_tasks(db: str, language: str | None) -> Iterator[ReadTask]:
    """Yield the tasks of a database that have controls which count, each set of controls once."""
    settings = Settings(db=db)
    services = make_services(settings, engine=False)
    seen = set()
    with Store.open(db, create=False) as store:
        tasks = store.load_all(Task)
    for task in tasks:
        is_wanted = task.blind_controls and task.control_bound != 1 and language in (None, task.language)
        if is_wanted and task.blind_controls not in seen:
            seen.add(task.blind_controls)
            document = json.loads(services.artifacts.get(task.blind_controls or ""))
            if not blind.rests_on_copies(document):
                yield ReadTask(
                    name=task.name, project=task.repo, document=document, tree=KnownTree.read(task, services)
                )


def main() -> int:
    """Measure the readers and print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", required=True, help="address of the database")
    parser.add_argument("--gradings", type=int, default=200, help="gradings of each task")
    parser.add_argument("--only-language", help="tasks of this language alone")
    parser.add_argument("--page", type=Path, help="write the table between the marks of this page")
    options = parser.parse_args()
    counts = measure(list(iterate_tasks(options.db, options.only_language)), options.gradings)
    table = render_table(counts)
    print(table)
    for name, count in counts.items():
        if count.tasks:
            print(f"{name}: paid in {dict(sorted(count.tasks.items(), key=lambda item: -item[1])[:5])}")
    if options.page:
        write_table(options.page, "benchmarks.forgers", table)
    beyond = [name for name, count in counts.items() if not count.is_within_bounds()]
    if beyond:
        print(f"beyond the bounds: {', '.join(beyond)}")
    false_bounds = [
        f"{line}; reader: {name}" for name, count in counts.items() for line in count.list_false_bounds(len(counts))
    ]
    print("\n".join(false_bounds))
    return int(bool(beyond or false_bounds))


if __name__ == "__main__":
    sys.exit(main())
