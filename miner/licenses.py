"""Which licence a tree is under, as an SPDX expression, from what the tree itself says.

In this order: the expression in pyproject.toml (PEP 639), the texts of licence files, trove classifiers. What is read
depends on blobs alone, so equal blobs are read once.
"""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser
from configparser import Error as ConfigError
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from backends.git import Repository

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
    ("GNU Lesser General Public License v3 (LGPLv3)", "LGPL-3.0-only"),
    ("GNU Affero General Public License v3", "AGPL-3.0-only"),
    ("Python Software Foundation License", "PSF-2.0"),
    ("The Unlicense (Unlicense)", "Unlicense"),
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
        return self._known[key]

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
    known = sorted({found for text in texts if (found := identify(text))})
    if known:
        either = any(re.search(r"under the terms of either|licensed under either|dual.licen[cs]ed", t) for t in texts)
        return (" OR " if either else " AND ").join(known)
    return _by_classifier(files)


def identify(text: str) -> str | None:
    """The SPDX id of one licence text, or None."""
    # The head of a file names it; the rest of a long one (a GPL) speaks of other licences too.
    plain = re.sub(r"[\s*#]+", " ", text.lower())[:6000]
    for spdx, phrase in TEXTS:
        if re.search(phrase, plain[:400] if _GNU.match(spdx) else plain):
            later = "or (at your option) any later version" in plain[:2000]
            return f"{spdx}-{'or-later' if later else 'only'}" if _GNU.match(spdx) else spdx
    return None


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


def _by_classifier(files: dict[str, str]) -> str:
    said = "\n".join([*_pyproject_classifiers(files), _setup_cfg_classifiers(files), files.get("setup.py", "")])
    found = {spdx for name, spdx in CLASSIFIERS if re.search(rf":: {re.escape(name)}\s*(['\",]|$)", said, re.MULTILINE)}
    return " AND ".join(sorted(found)) or NONE


def _pyproject_classifiers(files: dict[str, str]) -> list[str]:
    try:
        data: dict[str, Any] = tomllib.loads(files.get("pyproject.toml", ""))
    except tomllib.TOMLDecodeError:
        return []
    tables = (data.get("project"), data.get("tool", {}).get("poetry"), data.get("tool", {}).get("flit"))
    return [str(line) for table in tables if isinstance(table, dict) for line in table.get("classifiers", ())]


def _setup_cfg_classifiers(files: dict[str, str]) -> str:
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(files.get("setup.cfg", ""))
        return parser.get("metadata", "classifiers", fallback="") or parser.get("metadata", "classifier", fallback="")
    except ConfigError:
        return ""
