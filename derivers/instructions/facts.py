"""Facts of a task that wordings and arguments of constraints name, and words that are drawn for it."""

from __future__ import annotations

import hashlib
import random
import shlex
from collections.abc import Sequence

from evaluation.instructions.changes import ChangedFile
from languages.registry import LANGUAGES, find_test_commands
from mutation.grammars import find_grammar
from taskdb.records import Task

NAMES = ("Ada", "Bela", "Chidi", "Dagny", "Emre", "Freya", "Goran", "Hana", "Ines", "Jomo", "Keiko", "Luca")
WORDS = ("amber", "basalt", "cedar", "delta", "ember", "fjord", "garnet", "heron", "indigo", "juniper", "kelp", "larch")
CLOSINGS = ("Work complete.", "End of report.", "That is all.", "Nothing else is open.", "All steps are done.")
SKILLS = ("change-checklist", "repository-habits", "before-you-edit", "working-agreements")
TOOLS = ("maintainer_notes", "project_notes", "module_notes", "team_notes")


def make_random(task: Task, number: int) -> random.Random:
    """Return the source of random draws for an instruction task: the same for the same task and number."""
    digest = hashlib.sha256(f"{task.name}\0{task.base_commit}\0{number}".encode()).digest()
    return random.Random(int.from_bytes(digest, "big"))  # noqa: S311 - a draw that anyone can repeat


def collect_facts(task: Task, changes: Sequence[ChangedFile], rng: random.Random) -> dict[str, str]:
    """Return name -> text of the facts of a task; facts that it has not are left out.

    Args:
        task: the original.
        changes: changes of the gold patch.
        rng: source of the drawn words.
    """
    language = LANGUAGES.get(task.language)
    n_lines = sum(len(change.added) + change.n_removed for change in changes)
    sources = [
        change for change in changes if change.after is not None and (language is None or is_source(task, change.path))
    ]
    longest = max((len(line) for change in sources for _, line in change.added), default=0)
    facts = {
        "closing": rng.choice(CLOSINGS),
        "word": rng.choice(WORDS),
        "name": rng.choice(NAMES),
        "skill": rng.choice(SKILLS),
        "tool": rng.choice(TOOLS),
        "tests": find_test_commands(),
        "test_command": describe_test_command(task),
        "license": task.license if task.license not in {"", "NOASSERTION"} else "Apache-2.0",
        "max_files": str(len(changes) + rng.randint(1, 3)),
        "max_lines": str(round(2.5 * n_lines) + rng.randint(20, 60)),
        "max_calls": str(rng.choice((40, 50, 60))),
        "max_words": str(rng.choice((80, 100, 120))),
        "max_characters": str(max(100, longest + 10)),
        "max_function": str(rng.choice((60, 80, 100))),
    }
    if language is not None and language.habits.output:
        facts |= {"print": language.habits.output, "print_example": language.habits.output_example}
    if sources:
        facts["file"] = path = min(sources, key=lambda change: (change.is_new, change.path)).path
        if (grammar := find_grammar(path)) is not None:
            facts["comment"] = grammar.comment_prefix
    return facts


def describe_test_command(task: Task) -> str:
    """Return the command of a task's tests as people run it."""
    command = shlex.join(task.plan.test.argv) if task.plan else ""
    return command or (LANGUAGES[task.language].test_command if task.language in LANGUAGES else "make test")


def is_source(task: Task, path: str) -> bool:
    """Return whether a path is a program file of the task's language."""
    language = LANGUAGES.get(task.language)
    return language is None or path.endswith(language.suffixes)
