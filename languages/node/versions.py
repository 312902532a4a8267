"""Which Node a commit is built for: the newest that its CI lists and that existed then, else by engines and date."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import date

from languages.facts import Wanted
from languages.node.package import Project
from languages.node.releases import CODENAMES, RELEASED, SETTLED
from languages.tree import Tree
from languages.workflows import Job
from taskdb.records import Evidence

KEYS = ("node-version", "node_version", "node-versions", "node", "node_js", "nodejs", "nodejs-version", "versionspec")
"""Keys of matrices and steps whose values are versions of Node."""

_FILES = (".nvmrc", ".node-version", ".tool-versions")
_IMAGE = re.compile(r"(?:^|/)node:(\d+)")


def listed(tree: Tree, project: Project, jobs: Sequence[Job]) -> Iterator[Wanted]:
    """Versions that the project says it is tested on, in the order of trust; texts as written."""
    for job in jobs:
        for key in KEYS:
            for value in job.values.get(key, ()):
                yield Wanted(text=value.text, path=job.path, line=value.line)
        for image in job.uses:
            if match := _IMAGE.search(image.text):
                yield Wanted(text=match[1], path=image.path, line=image.line)
    folder = project.root.folder
    for path in dict.fromkeys([posixpath.join(folder, name) for name in _FILES] + list(_FILES)):
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = re.match(r"(?:node(?:js)?\s+)?(v?\d[\w.]*|lts/\S+|lts|node|stable)\s*$", line.strip())
            if match:
                yield Wanted(text=match[1], path=path, line=number)
    pinned = project.root.data.get("volta")
    if isinstance(pinned, dict) and isinstance(pinned.get("node"), str):
        yield Wanted(text=pinned["node"], path=project.root.path, line=project.root.line('"volta"'))


def majors(text: str, day: date) -> list[str]:
    """The versions of ours that a text such as `18.x`, `>=16`, `lts/*` or `lts/iron` means, oldest first."""
    word = text.strip().lower().lstrip("v")
    existed = [v for v, released in RELEASED.items() if released <= day] or [next(iter(RELEASED))]
    lts = [v for v in existed if RELEASED[v] + SETTLED <= day] or existed[:1]
    if word in ("lts/*", "lts", "lts/-0"):
        return lts[-1:]
    if word.startswith("lts/-") and word[5:].isdigit():
        return lts[-1 - int(word[5:]) :][:1]
    if word.startswith("lts/"):
        return [CODENAMES[word[4:]]] if word[4:] in CODENAMES else []
    if word in ("node", "latest", "current", "stable", "*"):
        return existed[-1:]
    if re.fullmatch(r"\d+(\.[\dx*]+)*(-.*)?", word):
        return [word.partition(".")[0].partition("-")[0]]
    return [v for v in RELEASED if allows(word, int(v))][:1] if re.match(r"[\^~>=<\d]", word) else []


def allows(text: str, major: int) -> bool:
    """Whether some release of that major version meets a range of package.json's `engines`."""
    return any(_meets(part, major) for part in text.split("||"))


def _meets(part: str, major: int) -> bool:
    span = re.fullmatch(r"\s*v?(\d+)\S*\s+-\s+v?(\d+)\S*\s*", part)
    if span:
        return int(span[1]) <= major <= int(span[2])
    for sign, number, rest in re.findall(r"(\^|~|>=|<=|>|<|=)?\s*v?(\d+)((?:\.[\dx*]+)*)", part):
        bound = int(number)
        whole = not rest.replace(".", "").strip("0x*")
        right = {
            ">=": major >= bound, ">": major > bound or (major == bound and not whole), "<=": major <= bound,
            "<": major < bound or (major == bound and not whole),
        }.get(sign, major == bound)  # fmt: skip
        if not right:
            return False
    return True


def candidates(tree: Tree, project: Project, jobs: Sequence[Job], here: Sequence[str], day: date) -> list[Evidence]:
    """The versions worth trying, best first; empty when this machine has none that fits.

    Of what CI lists the newest that existed on the day; a version that cannot be had stands for the next above it.
    """
    engines = project.root.words("engines").get("node", "")
    found: dict[str, Evidence] = {}
    places = list(listed(tree, project, jobs))
    groups = dict.fromkeys("ci" if "/workflows/" in one.path or "/actions/" in one.path else one.path for one in places)
    for group in groups:
        inside = [
            one
            for one in places
            if one.path == group or ("/workflows/" in one.path or "/actions/" in one.path) == (group == "ci")
        ]
        meant = {version: one for one in reversed(inside) for version in majors(one.text, day)}
        for version in sorted(meant, key=int, reverse=True):
            nearest = next((v for v in here if int(v) >= int(version) and RELEASED[v] <= day), None)
            if nearest and nearest not in found:
                one = meant[version]
                note = "" if nearest == version else f"{version} is listed, {nearest} is nearest to it"
                found[nearest] = _evidence(nearest, one.path, one.line, note)
    by_date = _by_date([v for v in here if allows(engines, int(v))] or list(here), day)
    if by_date and by_date not in found:
        if engines and not found:
            found[by_date] = _evidence(
                by_date, project.root.path, project.root.line('"engines"'), f"engines: {engines}"
            )
        else:
            found[by_date] = _evidence(by_date, "(date)", 0, f"newest with long-term support on {day}")
    return list(found.values())


def _by_date(here: Sequence[str], day: date) -> str | None:
    settled = [v for v in here if RELEASED[v] + SETTLED <= day]
    existed = [v for v in here if RELEASED[v] <= day]
    return next(iter([*settled[-1:], *existed[-1:], *here[:1]]), None)


def _evidence(version: str, path: str, line: int, note: str = "") -> Evidence:
    return Evidence(choice="language_version", value=version, path=path, line=line, note=note)
