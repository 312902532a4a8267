"""Decisions on a language stand in `languages/`: no other package compares with its name, suffix or framework."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from languages.registry import LANGUAGES, frameworks_by_name, languages_by_suffix
from languages.unsupported import UNSUPPORTED

ROOT = Path(__file__).parents[2]
WORDS = frozenset({*LANGUAGES, *UNSUPPORTED, *languages_by_suffix(), *frameworks_by_name(), "cpp", "c++"})
"""Names and suffixes of languages, and names of test frameworks."""
EXEMPT_PACKAGES = {
    "languages": "the place of these decisions",
    "guest": "runs in containers without the rest of mergemill; a framework names its reader in `Framework.report`",
    "mutation": "an engine beside `languages`, whose operators are tables by grammar",
}
SELF = "a file of mergemill itself, which is written in Python"
COLUMN = "a name of a column, or part of a longer text"
EXEMPT: dict[str, tuple[str, frozenset[str]]] = {
    "backends/llm/client.py": ("how a client library returns a message as plain data", frozenset({"python"})),
    "builders/interpreters.py": ("copies Python interpreters of this machine into bases", frozenset({"python"})),
    "core/config.py": (SELF, frozenset({"*.py"})),
    "evaluation/instructions/effects.py": (
        "programs that agents start, and a mode in which they open files",
        frozenset({"perl", "r", "ruby"}),
    ),
    "evaluation/performance/workload.py": (SELF, frozenset({".py"})),
    "evaluation/published.py": ("forms of test ids in published datasets", frozenset({".py", "_test.go"})),
    "evaluation/reports/coverage.py": (SELF, frozenset({"_mergemill_coverage.py"})),
    "exporters/formats/multi_swe_bench.py": (
        "names of languages in the format of Multi-SWE-bench",
        frozenset({"c++", "cpp", "javascript", "typescript"}),
    ),
    "exporters/formats/trainer_rows.py": (SELF, frozenset({".py"})),
    "exporters/verifier_archive.py": (SELF, frozenset({".py"})),
    "mergemill/agents/sampling/programs.py": ("programs of agents are written in Python", frozenset({"python"})),
    "mergemill/cli/agents/difficulty.py": (COLUMN, frozenset({"c"})),
    "mergemill/cli/operations/images.py": (
        "default of an option, shown by --help without the modules of languages; a folder of programs of agents",
        frozenset({"programs", "python"}),
    ),
    "mergemill/execution/grader_version.py": (SELF, frozenset({".py"})),
    "mergemill/operations/agent_checks.py": ("programs of agents are written in Python", frozenset({"python"})),
    "mergemill/operations/doctor.py": ("the Python that runs mergemill and programs of agents", frozenset({"python"})),
    "mergemill/worlds/containers.py": ("tools of worlds are written in Python", frozenset({"python"})),
    "miner/licenses.py": ("headers of Python files that state a license", frozenset({"*.py"})),
    "miner/repos/github.py": (COLUMN, frozenset({"r"})),
    "miner/tags/diffs.py": (
        "changes of type annotations alone, a kind of Python's",
        frozenset({".py", ".pyi"}),
    ),
    "miner/tags/lexicon.py": ("a word of commit messages", frozenset({"make"})),
    "explorers/corpora/corpus.py": ("a mode of memory maps", frozenset({"r"})),
    "samplers/difficulty/summary.py": (COLUMN, frozenset({"c"})),
    "samplers/gateway/dialects.py": ("a part of a path", frozenset({"r"})),
    "samplers/programs/program.py": (
        "an index from which programs of agents come",
        frozenset({"python"}),
    ),
    "samplers/programs/store.py": ("a folder of programs of agents", frozenset({"programs"})),
    "simulators/swe/execution.py": ("a program of Python that is run by its module's name", frozenset({".py"})),
    "simulators/swe/programs.py": ("groups of programs that are simulated", frozenset({"c", "javascript", "python"})),
    "taskdb/counts.py": (COLUMN, frozenset({"c"})),
    "taskdb/listing.py": (COLUMN, frozenset({"c"})),
    "taskdb/queries/task_filters.py": (COLUMN, frozenset({"c"})),
    "taskdb/queries/trajectories.py": (COLUMN, frozenset({"c"})),
    "verifiers/judge/tokens.py": ("an escaped character", frozenset({"r"})),
    "worlds/bundles/harbor.py": (SELF, frozenset({".py"})),
    "worlds/server/service.py": (SELF, frozenset({"*.py"})),
}
"""Module -> reason why words in it are no decision on a language that a task is made of, and these words."""
_END_OF_NAME = re.compile(rf"(\*|_[^_]\w*)({'|'.join(map(re.escape, languages_by_suffix()))})")


def list_packages() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return sorted(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])


def find_words(source: str) -> Iterator[str]:
    """Yield the literals of a module that are such a word, or end of a file's name such as `_test.go`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            if text in WORDS or _END_OF_NAME.fullmatch(text):
                yield text


def list_decisions() -> dict[str, set[str]]:
    """Return module -> words in it, for all packages that are not exempt."""
    modules = [
        path
        for package in list_packages()
        if package not in EXEMPT_PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    ]
    words = {str(path.relative_to(ROOT)): set(find_words(path.read_text(encoding="utf-8"))) for path in modules}
    return {path: names for path, names in words.items() if names}


def test_other_packages_decide_nothing_by_language() -> None:
    decisions = {path: words - EXEMPT.get(path, ("", frozenset()))[1] for path, words in list_decisions().items()}
    assert {path: words for path, words in decisions.items() if words} == {}, "see Language in languages/base.py"


def test_each_exception_is_needed() -> None:
    decisions = list_decisions()
    assert {path: words for path, (_, words) in EXEMPT.items() if not words <= decisions.get(path, set())} == {}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('if plan.language == "go": pass', {"go"}),
        ('path.endswith((".rs", "_test.go"))', {".rs", "_test.go"}),
        ('TIMES = {"go-test": 1}', {"go-test"}),
        ('match name:\n    case "ruby": pass', {"ruby"}),
        ('"""Go and Rust."""\nread("tests/data.json", "going")', set()),
    ],
)
def test_a_decision_is_found(source: str, words: set[str]) -> None:
    assert set(find_words(source)) == words
