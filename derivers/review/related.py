"""Files of the tree for reviewers without tools: those that the files under review import, and that import them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from derivers.review.construction import count_lines, get_size_limits
from derivers.review.history import ReviewHistory
from languages.imports import ImportIndex, count_shared_folders, list_importer_words
from languages.paths import is_source
from taskdb.artifacts import Artifacts
from taskdb.records.oracles import MaterialSize, ReviewOracle

MAX_RELATED = 10
"""Related files of a review. Models find less in more material, so only the nearest are given."""
MAX_CANDIDATES = 200
"""Files that name a file under review and are read to see whether they import it."""


def add_related_files(history: ReviewHistory, oracle: ReviewOracle, artifacts: Artifacts) -> ReviewOracle:
    """Return a review with its related files, which are stored, and the size of its material.

    Args:
        history: the repository.
        oracle: review without either; one without a tree gets no related files.
        artifacts: store of its texts.
    """
    files, diff = oracle.load_files(artifacts), artifacts.get_text(oracle.diff) if oracle.diff else ""
    related = select_related_files(history, oracle.tree, files, diff) if oracle.tree else {}
    texts = (*files.values(), *related.values(), diff)
    size = MaterialSize(files=len(files) + len(related), n_bytes=sum(len(text.encode()) for text in texts))
    stored = artifacts.put_text(json.dumps(related, ensure_ascii=False)) if related else None
    return oracle.model_copy(update={"related": stored, "material": size})


def select_related_files(history: ReviewHistory, commit: str, reviewed: Mapping[str, str], diff: str) -> dict[str, str]:
    """Return the related files of a review within its limits of size, the nearest first: path -> text.

    First come files that import, or are imported by, most of the files under review, then those that these import. All
    files under review count alike, so the choice does not reveal which of them is faulty.

    Args:
        history: the repository.
        commit: commit in which the files under review are as given.
        reviewed: files under review.
        diff: diff under review; empty for none.
    """
    index = ImportIndex(history.list_sources(commit))
    nearest = _rank_neighbours(history, commit, index, reviewed)
    texts = history.read_texts(commit, nearest[: 2 * MAX_RELATED])
    further: dict[str, None] = {}
    for path, text in texts.items():
        imported = index.find_imported(path, text)
        further |= dict.fromkeys(file for file in imported if file not in reviewed and file not in nearest)
    texts |= history.read_texts(commit, list(further)[: 2 * MAX_RELATED])
    ranked = {path: texts[path] for path in (*nearest, *further) if path in texts}
    return _take_fitting(ranked, reviewed, diff)


def _rank_neighbours(history: ReviewHistory, commit: str, index: ImportIndex, reviewed: Mapping[str, str]) -> list[str]:
    """Return the files that import files under review or are imported by them, those with most of them first."""
    links: Counter[str] = Counter()
    for path, text in reviewed.items():
        links.update(file for file in index.find_imported(path, text) if file not in reviewed)
    words = {word for path in reviewed for word in list_importer_words(path)}
    naming = [path for path in history.search_any_word(commit, words) if is_source(path) and path not in reviewed]
    nearness = {path: _measure_nearness(path, reviewed) for path in {*naming, *links}}
    naming.sort(key=lambda path: (-nearness[path], path))
    for path, text in history.read_texts(commit, naming[:MAX_CANDIDATES]).items():
        links[path] += len(reviewed.keys() & set(index.find_imported(path, text)))
    linked = [path for path, number in links.items() if number]
    return sorted(linked, key=lambda path: (-links[path], -nearness[path], path))


def _measure_nearness(path: str, reviewed: Iterable[str]) -> int:
    return max(count_shared_folders(path, other) for other in reviewed)


def _take_fitting(ranked: Mapping[str, str], reviewed: Mapping[str, str], diff: str) -> dict[str, str]:
    """Return the first files that fit the limits of size together with the files under review and the diff."""
    max_lines, max_chars = get_size_limits(diff)
    lines = sum(map(count_lines, reviewed.values()))
    chars = sum(map(len, reviewed.values())) + len(diff)
    fitting: dict[str, str] = {}
    for path, text in ranked.items():
        fits = lines + count_lines(text) <= max_lines and chars + len(text) <= max_chars
        if text and fits and len(fitting) < MAX_RELATED:
            fitting[path] = text
            lines, chars = lines + count_lines(text), chars + len(text)
    return fitting
