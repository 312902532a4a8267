"""Places for a mirrored bug: which change of another project fits which source files, by symbols, modules and words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.word_parts import compare_words, list_word_parts, weigh_words
from guest.harness.structure.structure_check import list_modules
from mutation.definitions import list_definitions
from taskdb.records import Candidate

MAX_SHOWN_FILES = 3
"""Source files that the model is shown for a change."""
BONUS = 0.1
"""Similarity that a module adds which both use, or a function that has the same name in both."""
MAX_BONUS = 0.5
"""Similarity that these add together."""
_HEADING = re.compile(r"^@@ [^@]* @@ ?(.*)$", re.MULTILINE)
_DEFINITION = re.compile(r"\b(?:def|func|fun|fn|function|sub|class|struct|interface|trait)\s+(?:\([^)]*\)\s*)?(\w+)")
_NAME = re.compile(r"[^\W\d]\w+")


@dataclass(frozen=True, kw_only=True)
class ChangeModel:
    """A change of another project after which a bug is made."""

    candidate: Candidate
    gold_patch: str
    test_patch: str

    @property
    def words(self) -> frozenset[str]:
        """Words of the statement and of the changed code."""
        return frozenset(list_word_parts(f"{self.candidate.problem_statement}\n{self.gold_patch}"))

    @property
    def functions(self) -> frozenset[str]:
        """Names of the functions and types that the gold patch changes."""
        lines = [line[1:] for line in self.gold_patch.splitlines() if line[:1] in "+-"]
        text = "\n".join([*_HEADING.findall(self.gold_patch), *lines])
        return frozenset(_DEFINITION.findall(text))


@dataclass(frozen=True, kw_only=True)
class MirrorPlace:
    """A change and the source files in which its mistake could be made, the most similar first."""

    model: ChangeModel
    paths: tuple[str, ...]
    similarity: float


def match_models(models: Sequence[ChangeModel], sources: Mapping[str, bytes]) -> list[MirrorPlace]:
    """Return the place of each change, the most similar first; of equally similar ones the order is kept.

    A change is compared with a file by the words of both, weighted by how rare they are; modules that the file imports
    and the change uses, and functions of the same name, add to that.

    Args:
        models: the changes.
        sources: path -> content of the source files that may have a bug.
    """
    words = {path: frozenset(list_word_parts(content.decode(errors="replace"))) for path, content in sources.items()}
    weights = weigh_words([*words.values(), *(model.words for model in models)])
    symbols = {path: _list_symbols(path, content) for path, content in sources.items()}
    places = []
    for model in models:
        similarity = {
            path: compare_words(model.words, words[path], weights) + _compute_bonus(model, *symbols[path])
            for path in sources
        }
        paths = sorted(sources, key=lambda path: -similarity[path])[:MAX_SHOWN_FILES]
        places.append(MirrorPlace(model=model, paths=tuple(paths), similarity=similarity[paths[0]] if paths else 0.0))
    return sorted(places, key=lambda place: -place.similarity)


def _list_symbols(path: str, content: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """Return the modules that a file imports, by their first name, and the names that it defines."""
    modules = list_modules(path, content.decode(errors="replace"), with_names=False)
    roots = frozenset(match[0] for module in modules if (match := _NAME.search(module)))
    return roots, frozenset(definition.last_name for definition in list_definitions(path, content).values())


def _compute_bonus(model: ChangeModel, modules: frozenset[str], names: frozenset[str]) -> float:
    used = set(_NAME.findall(f"{model.gold_patch}\n{model.test_patch}"))
    return min(MAX_BONUS, BONUS * (len(modules & used) + len(names & model.functions)))
