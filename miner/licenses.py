"""Licence of a tree as an SPDX expression, from the files of the tree.

In this order: the expression in pyproject.toml (PEP 639), licence files (an SPDX identifier in them, then their text),
trove classifiers, the `license` field of the packaging files, SPDX identifiers in Python files. Equal blobs are read
once.
"""

from __future__ import annotations

import re
from collections import Counter
from configparser import ConfigParser
from configparser import Error as ConfigError
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from backends.git import GitError, GitRepository
from core.toml import parse_toml

NO_ASSERTION = "NOASSERTION"
"""SPDX's value for an unknown licence."""

_FILE = re.compile(r"^(un)?(licen[cs]e|copying)([-._ ].*)?$", re.IGNORECASE)
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")

# The first matching phrase of a group decides; texts are compared in lower case with single spaces.
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
)

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
_MAX_NAME_LENGTH = 100
"""A longer field holds the licence's text."""
_SETUP_LICENSE = re.compile(r"\blicense\s*=\s*[\"']([^\"'\n]{1,60})[\"']", re.IGNORECASE)
_SPDX_TAG = re.compile(r"^\W*SPDX-License-Identifier:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_ALTERNATIVES = re.compile(
    r"under the terms of \*?either|licen[cs]ed under either|dual[- ]licen[cs]ed|your choice of either", re.IGNORECASE
)
_GNU_LICENSE = re.compile(r"^(A|L)?GPL-")


class LicenseFinder:
    """Finder of the licences of commits of a repository; equal sets of blobs are read once."""

    def __init__(self, repository: GitRepository) -> None:
        self.repository = repository
        self._known: dict[tuple[str, ...], str] = {}

    def find_license(self, commit: str) -> str:
        """Return the SPDX expression of a commit's tree, `NOASSERTION` when no licence is recognised."""
        blobs = self._list_blobs(commit)
        # Licences change rarely, so most commits of a repository share this key.
        key = tuple(f"{name} {oid}" for name, oid in blobs)
        if key not in self._known:
            contents = self.repository.read_blobs(oid for _, oid in blobs)
            texts = {name: raw.decode(errors="replace") for (name, _), raw in zip(blobs, contents, strict=True)}
            self._known[key] = parse_license_files(texts)
        return self._find_in_headers(commit) if self._known[key] == NO_ASSERTION else self._known[key]

    def _find_in_headers(self, commit: str) -> str:
        """Return the most frequent SPDX identifier in the Python files of a commit."""
        pattern = r"^# *SPDX-License-Identifier: *[A-Za-z0-9.+() -]+$"
        try:
            text = self.repository.run_git("grep", "-h", "-I", "-E", pattern, commit, "--", "*.py")
        except GitError:
            # git grep exits with an error where no file matches.
            return NO_ASSERTION
        counts = Counter(
            _canonicalize_expression(line.partition(":")[2]) for line in text.decode(errors="replace").splitlines()
        )
        counts.pop(None, None)
        return min(counts, key=lambda spdx: (-counts[spdx], spdx)) or NO_ASSERTION if counts else NO_ASSERTION

    def _list_blobs(self, commit: str) -> list[tuple[str, str]]:
        """List names and blobs of files about licences: at the root, and in LICENSES/ (the REUSE layout)."""
        blobs = []
        for row in self.repository.run_git("ls-tree", "-z", "--full-tree", commit, "./", "LICENSES/").split(b"\0")[:-1]:
            head, _, path = row.partition(b"\t")
            mode, kind, oid = head.decode().split()
            name = path.decode(errors="replace")
            wanted = name in _MANIFESTS or _FILE.match(name) or name.startswith("LICENSES/")
            # The blob of a link holds the name of its target.
            if kind == "blob" and mode != "120000" and wanted:
                blobs.append((name, oid))
        return blobs


def parse_license_files(files: dict[str, str]) -> str:
    """Return the SPDX expression of the root's files, by name and text."""
    if expression := _read_pyproject_expression(files.get("pyproject.toml", "")):
        return expression
    texts = [text for name, text in sorted(files.items()) if name not in _MANIFESTS]
    known = {license_id for text in texts if (license_id := identify(text))}
    if any(spdx.startswith("LGPL-3.0") for spdx in known):
        # The LGPL is a supplement to the GPL's text, so both texts are there.
        known -= {"GPL-3.0-only", "GPL-3.0-or-later"}
    text = _find_by_classifier(files)
    # The GPL's text is the same for both grants; only the classifier shows that later versions are permitted.
    if known:
        later = {spdx.replace("-only", "-or-later") for spdx in known} & set(text.split(" AND "))
        known = {spdx if (more := spdx.replace("-only", "-or-later")) not in later else more for spdx in known}
        either = any(_ALTERNATIVES.search(" ".join(text.split())) for text in texts)
        return (" OR " if either else " AND ").join(sorted(known))
    return text if text != NO_ASSERTION else _find_by_field(files)


def identify(text: str) -> str | None:
    """Return the SPDX id of a licence text: its SPDX tag, else the licence whose phrase comes first; or None."""
    if (marked := _SPDX_TAG.search(text)) and (spdx := _canonicalize_expression(marked[1])):
        return spdx
    # The head of a file names its licence; a long text (the GPL) mentions other licences further down.
    plain = re.sub(r"[\s*#]+", " ", text.lower())[:6000]
    places = [
        (match.start(), order, spdx)
        for order, (spdx, phrase) in enumerate(TEXTS)
        if (match := re.search(phrase, plain[:400] if _GNU_LICENSE.match(spdx) else plain))
    ]
    if not places:
        return None
    # Further down a file may contain the licences of bundled code.
    spdx = min(places)[2]
    later = "or (at your option) any later version" in plain[:2000]
    return f"{spdx}-{'or-later' if later else 'only'}" if _GNU_LICENSE.match(spdx) else spdx


def is_allowed(expression: str, allowed: tuple[str, ...]) -> bool:
    """Return whether any of the expression's alternatives consists of allowed licences only."""
    plain = expression.replace("(", " ").replace(")", " ")
    # Of a nested expression all licences are required, which is never too lenient.
    if "(" in expression:
        plain = plain.replace(" OR ", " AND ")
    return any(
        all(part.strip() in allowed for part in re.split(r" AND ", alternative)) for alternative in plain.split(" OR ")
    )


def _read_pyproject_expression(pyproject: str) -> str | None:
    try:
        project = parse_toml(pyproject).get("project", {})
        return str(canonicalize_license_expression(project["license"])) if isinstance(project["license"], str) else None
    except (ValueError, KeyError, AttributeError):
        return None


def _canonicalize_expression(text: str) -> str | None:
    """Return an SPDX expression in canonical form; None when it is invalid."""
    try:
        return str(canonicalize_license_expression(text.strip().removesuffix("*/").strip()))
    except InvalidLicenseExpression:
        return None


def _find_by_field(files: dict[str, str]) -> str:
    """Return the licence in the `license` field of a packaging file, if it is an SPDX id or a usual name."""
    text = [
        *_list_pyproject_licenses(files),
        _read_setup_cfg(files, "license"),
        *_SETUP_LICENSE.findall(files.get("setup.py", "")),
    ]
    for name in filter(None, (part.strip() for part in text)):
        if len(name) > _MAX_NAME_LENGTH and (spdx := identify(name)):
            return spdx
        plain = re.sub(r"\b(the|licen[cs]e|version)\b|[,()]", " ", name.lower())
        usual = next((spdx for spdx, names in NAMES if " ".join(plain.split()) in names), None)
        if license_id := usual or _canonicalize_expression(name):
            return license_id
    return NO_ASSERTION


def _list_pyproject_licenses(files: dict[str, str]) -> list[str]:
    fields = [table.get("license") for table in _list_pyproject_tables(files)]
    return [str(text.get("text", "")) if isinstance(text, dict) else str(text or "") for text in fields]


def _find_by_classifier(files: dict[str, str]) -> str:
    text = "\n".join(
        [
            *_list_pyproject_classifiers(files),
            _read_setup_cfg(files, "classifiers", "classifier"),
            files.get("setup.py", ""),
        ]
    )
    spdx_ids = {
        spdx for name, spdx in CLASSIFIERS if re.search(rf":: {re.escape(name)}\s*(['\",]|$)", text, re.MULTILINE)
    }
    return " AND ".join(sorted(spdx_ids)) or NO_ASSERTION


def _list_pyproject_classifiers(files: dict[str, str]) -> list[str]:
    lists = [table.get("classifiers") for table in _list_pyproject_tables(files)]
    return [str(line) for lines in lists if isinstance(lines, list) for line in lines]


def _list_pyproject_tables(files: dict[str, str]) -> list[dict[str, Any]]:
    """Return the tables that describe the package; none when the file is not TOML."""
    try:
        data = parse_toml(files.get("pyproject.toml", ""))
    except ValueError:
        return []
    tools = data.get("tool")
    tools = tools if isinstance(tools, dict) else {}
    tables = (data.get("project"), tools.get("poetry"), tools.get("flit"))
    return [table for table in tables if isinstance(table, dict)]


def _read_setup_cfg(files: dict[str, str], *names: str) -> str:
    """Return the first non-empty field of setup.cfg's metadata among these names."""
    # Without interpolation, as `%` is common in descriptions; duplicate keys are no reason to read nothing.
    parser = ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(files.get("setup.cfg", ""))
        return next((text for name in names if (text := parser.get("metadata", name, fallback=""))), "")
    except ConfigError:
        return ""
