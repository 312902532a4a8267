"""Which licence a tree is under, as an SPDX expression, from what the tree itself says.

In this order: the expression in pyproject.toml (PEP 639), licence files (an SPDX identifier in them, then their text),
trove classifiers, the `license` field of the packaging files, SPDX identifiers in Python files. Equal blobs are read
once.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from configparser import ConfigParser
from configparser import Error as ConfigError
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from backends.git import GitError, Repository

NONE = "NOASSERTION"
"""SPDX's word for: nobody said."""

_FILE = re.compile(r"^(un)?(licen[cs]e|copying)([-._ ].*)?$", re.IGNORECASE)
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")

# The first phrase of a group that a text holds decides; a text is compared in lower case with single spaces.
TEXTS: tuple[tuple[str, str], ...] = (
    ("AGPL-3.0", r"gnu affero general public license.{0,40}version 3"),
    ("LGPL-3.0", r"gnu (lesser|library) general public license.{0,40}version 3"),
    ("LGPL-2.1", r"gnu lesser general public license.{0,40}version 2\.1"),
    ("GPL-3.0", r"gnu general public license.{0,40}version 3"),
    ("GPL-2.0", r"gnu general public license.{0,40}version 2"),
    ("MPL-2.0", r"mozilla public license.{0,20}(version|v\.?) ?2\.0"),
    ("EPL-2.0", r"eclipse public license.{0,20}(version|v\.?) ?2\.0"),
    ("Apache-2.0", r"apache license.{0,20}version 2\.0|apache\.org/licenses/license-2\.0"),
    ("PSF-2.0", r"python software foundation license version 2"),
    ("CC0-1.0", r"cc0 1\.0 universal"),
    ("Unlicense", r"free and unencumbered software released into the public domain"),
    ("BSL-1.0", r"boost software license.{0,20}version 1\.0"),
    ("Zlib", r"altered source versions must be plainly marked"),
    ("BSD-3-Clause", r"redistributions? of source code must retain.{0,800}(neither the names?|used to endorse)"),
    ("BSD-2-Clause", r"redistributions? of source code must retain"),
    ("0BSD", r"permission to use, copy, modify, and/or distribute this software .{0,60}is hereby granted\. the soft"),
    ("ISC", r"permission to use, copy, modify,? and(/or)? distribute this software for any purpose with"),
    ("MIT", r"permission is hereby granted, free of charge, to any person obtaining a copy"),
)  # fmt: skip

CLASSIFIERS: tuple[tuple[str, str], ...] = (
    ("MIT License", "MIT"),
    ("BSD License", "BSD-3-Clause"),
    ("Apache Software License", "Apache-2.0"),
    ("ISC License (ISCL)", "ISC"),
    ("Mozilla Public License 2.0 (MPL 2.0)", "MPL-2.0"),
    ("GNU General Public License v2 (GPLv2)", "GPL-2.0-only"),
    ("GNU General Public License v3 (GPLv3)", "GPL-3.0-only"),
    ("GNU General Public License v3 or later (GPLv3+)", "GPL-3.0-or-later"),
    ("GNU General Public License v2 or later (GPLv2+)", "GPL-2.0-or-later"),
    ("GNU Lesser General Public License v2 or later (LGPLv2+)", "LGPL-2.1-or-later"),
    ("GNU Lesser General Public License v3 (LGPLv3)", "LGPL-3.0-only"),
    ("GNU Lesser General Public License v3 or later (LGPLv3+)", "LGPL-3.0-or-later"),
    ("GNU Affero General Public License v3", "AGPL-3.0-only"),
    ("GNU Affero General Public License v3 or later (AGPLv3+)", "AGPL-3.0-or-later"),
    ("zlib/libpng License", "Zlib"),
    ("Boost Software License 1.0 (BSL-1.0)", "BSL-1.0"),
    ("MIT No Attribution License (MIT-0)", "MIT-0"),
    ("CC0 1.0 Universal (CC0 1.0) Public Domain Dedication", "CC0-1.0"),
    ("Python Software Foundation License", "PSF-2.0"),
    ("The Unlicense (Unlicense)", "Unlicense"),
)
NAMES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("MIT", ("mit", "mit expat", "expat")),
    ("BSD-3-Clause", ("bsd", "bsd 3", "bsd 3-clause", "3-clause bsd", "new bsd", "modified bsd", "bsd-3", "bsd3")),
    ("BSD-2-Clause", ("bsd 2", "bsd 2-clause", "2-clause bsd", "simplified bsd", "bsd-2", "bsd2")),
    (
        "Apache-2.0",
        ("apache", "apache 2", "apache 2.0", "apache software", "apache software 2.0", "asl 2.0", "apache2"),
    ),
    ("ISC", ("isc",)),
    ("MPL-2.0", ("mpl 2.0", "mpl2", "mozilla public 2.0")),
    ("GPL-3.0-only", ("gpl v3", "gplv3", "gpl3", "gnu gpl v3", "gnu general public v3")),
    ("GPL-3.0-or-later", ("gplv3+", "gpl v3+", "gpl v3 or later")),
    ("GPL-2.0-only", ("gpl v2", "gplv2", "gpl2", "gnu gpl v2", "gnu general public v2")),
    ("LGPL-3.0-only", ("lgpl v3", "lgplv3", "gnu lgpl v3")),
    ("Unlicense", ("unlicense", "public domain unlicense")),
)
"""Usual names in a `license` field, in lower case and without `license`, `the` and `version`."""
_LONGEST_NAME = 100
"""A longer field holds the licence's text."""
_SETUP_LICENSE = re.compile(r"\blicense\s*=\s*[\"']([^\"'\n]{1,60})[\"']", re.IGNORECASE)
_MARK = re.compile(r"^\W*SPDX-License-Identifier:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_EITHER = re.compile(
    r"under the terms of \*?either|licen[cs]ed under either|dual[- ]licen[cs]ed|your choice of either", re.IGNORECASE
)
_GNU = re.compile(r"^(A|L)?GPL-")


class Licenses:
    """Finds the licence of commits of one repository, each set of blobs once."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._known: dict[tuple[str, ...], str] = {}

    def of(self, commit: str) -> str:
        """SPDX expression of a commit's tree, `NOASSERTION` when nothing in it is recognised."""
        blobs = self._blobs(commit)
        key = tuple(f"{name} {oid}" for name, oid in blobs)
        if key not in self._known:
            contents = self.repository.blobs(oid for _, oid in blobs)
            texts = {name: raw.decode(errors="replace") for (name, _), raw in zip(blobs, contents, strict=True)}
            self._known[key] = read(texts)
        return self._by_headers(commit) if self._known[key] == NONE else self._known[key]

    def _by_headers(self, commit: str) -> str:
        """The SPDX identifier that most Python files of a commit carry."""
        pattern = r"^# *SPDX-License-Identifier: *[A-Za-z0-9.+() -]+$"
        try:
            said = self.repository.git("grep", "-h", "-I", "-E", pattern, commit, "--", "*.py")
        except GitError:
            return NONE  # none does
        found = Counter(_canonical(line.partition(":")[2]) for line in said.decode(errors="replace").splitlines())
        found.pop(None, None)
        return min(found, key=lambda spdx: (-found[spdx], spdx)) or NONE if found else NONE

    def _blobs(self, commit: str) -> list[tuple[str, str]]:
        """Names and blobs of what may speak of a licence: at the root, and in LICENSES/ (the REUSE layout)."""
        found = []
        for row in self.repository.git("ls-tree", "-z", "--full-tree", commit, "./", "LICENSES/").split(b"\0")[:-1]:
            head, _, path = row.partition(b"\t")
            mode, kind, oid = head.decode().split()
            name = path.decode(errors="replace")
            wanted = name in _MANIFESTS or _FILE.match(name) or name.startswith("LICENSES/")
            if kind == "blob" and mode != "120000" and wanted:
                found.append((name, oid))
        return found


def read(files: dict[str, str]) -> str:
    """SPDX expression from the root's files, by name and text."""
    if expression := _expression(files.get("pyproject.toml", "")):
        return expression
    texts = [text for name, text in sorted(files.items()) if name not in _MANIFESTS]
    known = {found for text in texts if (found := identify(text))}
    if any(spdx.startswith("LGPL-3.0") for spdx in known):
        known -= {"GPL-3.0-only", "GPL-3.0-or-later"}  # the lesser one is a supplement to its text
    said = _by_classifier(files)
    if known:
        later = {spdx.replace("-only", "-or-later") for spdx in known} & set(said.split(" AND "))
        known = {spdx if (more := spdx.replace("-only", "-or-later")) not in later else more for spdx in known}
        either = any(_EITHER.search(" ".join(text.split())) for text in texts)
        return (" OR " if either else " AND ").join(sorted(known))
    return said if said != NONE else _by_field(files)


def identify(text: str) -> str | None:
    """The SPDX id of one licence text, or None: what it says it is, else the licence whose words come first."""
    if (marked := _MARK.search(text)) and (spdx := _canonical(marked[1])):
        return spdx
    # The head of a file names it; the rest of a long one (a GPL) speaks of other licences too.
    plain = re.sub(r"[\s*#]+", " ", text.lower())[:6000]
    places = [
        (found.start(), order, spdx)
        for order, (spdx, phrase) in enumerate(TEXTS)
        if (found := re.search(phrase, plain[:400] if _GNU.match(spdx) else plain))
    ]
    if not places:
        return None
    # Further down a file may hold the licences of what it incorporates.
    spdx = min(places)[2]
    later = "or (at your option) any later version" in plain[:2000]
    return f"{spdx}-{'or-later' if later else 'only'}" if _GNU.match(spdx) else spdx


def allows(expression: str, allowed: tuple[str, ...]) -> bool:
    """Whether one of the expression's alternatives consists of allowed licences only."""
    plain = expression.replace("(", " ").replace(")", " ")
    if "(" in expression:  # nested: ask for all of them, which is never too lenient
        plain = plain.replace(" OR ", " AND ")
    return any(
        all(part.strip() in allowed for part in re.split(r" AND ", alternative)) for alternative in plain.split(" OR ")
    )


def _expression(pyproject: str) -> str | None:
    try:
        project = tomllib.loads(pyproject).get("project", {})
        return str(canonicalize_license_expression(project["license"])) if isinstance(project["license"], str) else None
    except (tomllib.TOMLDecodeError, KeyError, AttributeError, InvalidLicenseExpression):
        return None


def _canonical(said: str) -> str | None:
    """An SPDX expression as SPDX writes it; None when it is none."""
    try:
        return str(canonicalize_license_expression(said.strip().removesuffix("*/").strip()))
    except InvalidLicenseExpression:
        return None


def _by_field(files: dict[str, str]) -> str:
    """What the `license` field of a packaging file says, where that is an SPDX id or a usual name of a licence."""
    said = [
        *_pyproject_licenses(files),
        _setup_cfg(files, "license"),
        *_SETUP_LICENSE.findall(files.get("setup.py", "")),
    ]
    for name in filter(None, (one.strip() for one in said)):
        if len(name) > _LONGEST_NAME and (spdx := identify(name)):
            return spdx
        plain = re.sub(r"\b(the|licen[cs]e|version)\b|[,()]", " ", name.lower())
        usual = next((spdx for spdx, names in NAMES if " ".join(plain.split()) in names), None)
        if found := usual or _canonical(name):
            return found
    return NONE


def _pyproject_licenses(files: dict[str, str]) -> list[str]:
    try:
        data: dict[str, Any] = tomllib.loads(files.get("pyproject.toml", ""))
    except tomllib.TOMLDecodeError:
        return []
    tables = (data.get("project"), data.get("tool", {}).get("poetry"), data.get("tool", {}).get("flit"))
    fields = [table.get("license") for table in tables if isinstance(table, dict)]
    return [str(said.get("text", "")) if isinstance(said, dict) else str(said or "") for said in fields]


def _by_classifier(files: dict[str, str]) -> str:
    said = "\n".join(
        [*_pyproject_classifiers(files), _setup_cfg(files, "classifiers", "classifier"), files.get("setup.py", "")]
    )
    found = {spdx for name, spdx in CLASSIFIERS if re.search(rf":: {re.escape(name)}\s*(['\",]|$)", said, re.MULTILINE)}
    return " AND ".join(sorted(found)) or NONE


def _pyproject_classifiers(files: dict[str, str]) -> list[str]:
    try:
        data: dict[str, Any] = tomllib.loads(files.get("pyproject.toml", ""))
    except tomllib.TOMLDecodeError:
        return []
    tables = (data.get("project"), data.get("tool", {}).get("poetry"), data.get("tool", {}).get("flit"))
    return [str(line) for table in tables if isinstance(table, dict) for line in table.get("classifiers", ())]


def _setup_cfg(files: dict[str, str], *names: str) -> str:
    """The first of some fields of setup.cfg's metadata that says anything."""
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(files.get("setup.cfg", ""))
        return next((said for name in names if (said := parser.get("metadata", name, fallback=""))), "")
    except ConfigError:
        return ""
