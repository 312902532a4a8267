"""Selection of the Node version: the newest in CI that existed at the date, else by engines and date."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import date

from languages.facts import SourcedValue
from languages.node.package import NodeProject
from languages.node.releases import CODENAMES, MINIMUM_AGE, RELEASED
from languages.source_tree import SourceTree
from languages.workflows import Job
from taskdb.records import Evidence

KEYS = ("node-version", "node_version", "node-versions", "node", "node_js", "nodejs", "nodejs-version", "versionspec")
"""Keys of matrices and steps whose values are Node versions."""

MAX_UNLISTED_OLDER = 2
"""Number of older versions that are tried where the project lists none."""

_FILES = (".nvmrc", ".node-version", ".tool-versions")
_IMAGE = re.compile(r"(?:^|/)node:(\d+)")


def read_versions(tree: SourceTree, project: NodeProject, jobs: Sequence[Job]) -> Iterator[SourcedValue]:
    """Yield the versions on which the project is tested, most trusted first, as written."""
    for job in jobs:
        for key in KEYS:
            for value in job.values.get(key, ()):
                yield SourcedValue(text=value.text, path=job.path, line=value.line)
        for image in job.uses:
            if match := _IMAGE.search(image.text):
                yield SourcedValue(text=match[1], path=image.path, line=image.line)
    folder = project.root.folder
    for path in dict.fromkeys([posixpath.join(folder, name) for name in _FILES] + list(_FILES)):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = re.match(r"(?:node(?:js)?\s+)?(v?\d[\w.]*|lts/\S+|lts|node|stable)\s*$", line.strip())
            if match:
                yield SourcedValue(text=match[1], path=path, line=number)
    volta = project.root.data.get("volta")
    if isinstance(volta, dict) and isinstance(volta.get("node"), str):
        yield SourcedValue(text=volta["node"], path=project.root.path, line=project.root.find_line('"volta"'))


def resolve_majors(text: str, day: date) -> list[str]:
    """Return the supported versions that `18.x`, `>=16`, `lts/*` or `lts/iron` refers to, oldest first."""
    word = text.strip().lower().lstrip("v")
    existing = [v for v, released in RELEASED.items() if released <= day] or [next(iter(RELEASED))]
    lts = [v for v in existing if RELEASED[v] + MINIMUM_AGE <= day] or existing[:1]
    if word in ("lts/*", "lts", "lts/-0"):
        return lts[-1:]
    if word.startswith("lts/-") and word[5:].isdigit():
        return lts[-1 - int(word[5:]) :][:1]
    if word.startswith("lts/"):
        return [CODENAMES[word[4:]]] if word[4:] in CODENAMES else []
    if word in ("node", "latest", "current", "stable", "*"):
        return existing[-1:]
    if re.fullmatch(r"\d+(\.[\dx*]+)*(-.*)?", word):
        return [word.partition(".")[0].partition("-")[0]]
    return [v for v in RELEASED if is_allowed(word, int(v))][:1] if re.match(r"[\^~>=<\d]", word) else []


def is_allowed(text: str, major: int) -> bool:
    """Return whether a release of that major version satisfies a range in `engines`."""
    return any(_meets_range(part, major) for part in text.split("||"))


def _meets_range(part: str, major: int) -> bool:
    bounds = re.fullmatch(r"\s*v?(\d+)\S*\s+-\s+v?(\d+)\S*\s*", part)
    if bounds:
        return int(bounds[1]) <= major <= int(bounds[2])
    for sign, number, rest in re.findall(r"(\^|~|>=|<=|>|<|=)?\s*v?(\d+)((?:\.[\dx*]+)*)", part):
        bound = int(number)
        whole = not rest.replace(".", "").strip("0x*")
        is_met = {
            ">=": major >= bound,
            ">": major > bound or (major == bound and not whole),
            "<=": major <= bound,
            "<": major < bound or (major == bound and not whole),
        }.get(sign, major == bound)
        if not is_met:
            return False
    return True


def rank_versions(
    tree: SourceTree, project: NodeProject, jobs: Sequence[Job], available: Sequence[str], day: date
) -> list[Evidence]:
    """Return the versions to try, best first; empty if none is available.

    Versions in CI that did not exist on the day are skipped; an unavailable version is replaced by the next newer
    version. Where the project lists none, older versions than the default follow, and last the newest that existed.
    """
    engines = project.root.get_texts("engines").get("node", "")
    ranked: dict[str, Evidence] = {}
    sources = list(read_versions(tree, project, jobs))
    groups = dict.fromkeys(
        "ci" if "/workflows/" in source.path or "/actions/" in source.path else source.path for source in sources
    )
    for group in groups:
        group_sources = [
            source
            for source in sources
            if source.path == group or ("/workflows/" in source.path or "/actions/" in source.path) == (group == "ci")
        ]
        by_version = {
            version: source for source in reversed(group_sources) for version in resolve_majors(source.text, day)
        }
        for version in sorted(by_version, key=int, reverse=True):
            nearest = next((v for v in available if int(v) >= int(version) and RELEASED[v] <= day), None)
            if nearest and nearest not in ranked:
                source = by_version[version]
                note = "" if nearest == version else f"{version} is listed, {nearest} is the nearest available"
                ranked[nearest] = _build_evidence(nearest, source.path, source.line, note)
    default = _rank_by_date([v for v in available if is_allowed(engines, int(v))] or list(available), day)
    if default and default not in ranked:
        if engines and not ranked:
            ranked[default] = _build_evidence(
                default, project.root.path, project.root.find_line('"engines"'), f"engines: {engines}"
            )
        else:
            ranked[default] = _build_evidence(default, "(date)", 0, f"newest with long-term support on {day}")
    if default and not sources:
        allowed = [v for v in available if is_allowed(engines, int(v)) and RELEASED[v] <= day and v != default]
        older = [v for v in allowed if int(v) < int(default)][: -1 - MAX_UNLISTED_OLDER : -1]
        newer = [v for v in allowed if int(v) > int(default)][-1:]
        for version in (*older, *newer):
            order = "older" if version in older else "newer"
            ranked[version] = _build_evidence(version, "(date)", 0, f"{order} than {default}")
    return list(ranked.values())


def _rank_by_date(available: Sequence[str], day: date) -> str | None:
    mature = [v for v in available if RELEASED[v] + MINIMUM_AGE <= day]
    existing = [v for v in available if RELEASED[v] <= day]
    return next(iter([*mature[-1:], *existing[-1:], *available[:1]]), None)


def _build_evidence(version: str, path: str, line: int, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=line, note=note)
