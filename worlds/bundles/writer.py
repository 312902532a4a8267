"""Bundles as folders, whole or not at all: the files of a format, a card, and a manifest with hashes."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from core.errors import InputError, make_write_error
from core.version import read_version
from training_data.canaries import mark_folder
from training_data.card import render_card
from training_data.row_files import hash_files
from worlds.bundles.card import build_card
from worlds.bundles.contents import ENVIRONMENT, BundledWorld
from worlds.bundles.formats import BundleCounts, BundleFormat

MANIFEST_NAME = "manifest.json"
MANIFEST_KIND = "mergemill-worlds"
SCHEMA = 1


def check_folder(out: Path) -> None:
    """Raise InputError where a folder cannot take a bundle: it has files other than those of an earlier bundle."""
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out} is not a folder", advice="choose another --out")
    if any(out.iterdir()) and not _is_bundle(out):
        raise InputError(f"{out} is not empty and holds no bundle of worlds", advice="choose another --out")


def write_bundle(
    worlds: Sequence[BundledWorld],
    out: Path,
    bundle_format: BundleFormat,
    *,
    left_out: Mapping[str, int],
    files: Mapping[str, bytes],
    canary: str = "",
    notes: Mapping[str, int] = MappingProxyType({}),
) -> BundleCounts:
    """Write a bundle; a bundle that is there is replaced.

    Args:
        worlds: worlds with their scenarios.
        out: a new or empty folder, or that of an earlier bundle of worlds.
        bundle_format: any of `worlds.bundles.formats.FORMATS`.
        left_out: reason -> scenarios that were left out already.
        files: further files, path -> content.
        canary: text by which its files are recognised in training data; empty for none.
        notes: warning -> scenarios that it is about, for card and manifest.

    Raises:
        InputError: the folder has other files, or writing is not permitted.
        Transient: the disk is full.
    """
    out = out.resolve()
    check_folder(out)
    partial = out.with_name(f".{out.name}.partial")
    counts = BundleCounts(notes=dict(notes))
    counts.left_out.update(left_out)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            bundle_format.write(worlds, partial, counts)
            for path, content in files.items():
                (partial / path).write_bytes(content)
            card = render_card(build_card(worlds, bundle_format, counts))
            (partial / "README.md").write_text(card, encoding="utf-8")
            if canary:
                mark_folder(partial, canary)
            _write_manifest(partial, worlds, bundle_format, counts)
            _move(partial, out)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise make_write_error(f"cannot write to {out}", error, advice="free some space, then run it again") from error
    return counts


def _write_manifest(
    folder: Path, worlds: Sequence[BundledWorld], bundle_format: BundleFormat, counts: BundleCounts
) -> None:
    manifest = {
        "kind": MANIFEST_KIND,
        "schema": SCHEMA,
        "mergemill": read_version(),
        "environment": ENVIRONMENT,
        "format": bundle_format.name,
        "files": hash_files(folder),
        "rows": counts.rows,
        "scenarios": counts.scenarios,
        "left_out": dict(counts.left_out),
        **({"notes": dict(counts.notes)} if counts.notes else {}),
        "worlds": [
            {
                "name": world.name,
                "license": world.contents.license,
                "origin": world.contents.origin,
                "models": list(world.contents.models),
                "certified_by": world.contents.certification.by if world.contents.certification else None,
                "program_sha256": hashlib.sha256(world.definition.program.encode()).hexdigest(),
                "scenarios": [scenario.definition.name for scenario in world.scenarios],
            }
            for world in worlds
        ],
    }
    (folder / MANIFEST_NAME).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _is_bundle(folder: Path) -> bool:
    """Return whether a folder holds a bundle of worlds and nothing else."""
    try:
        manifest = json.loads((folder / MANIFEST_NAME).read_bytes())
    except (OSError, ValueError):
        return False
    if not isinstance(manifest, dict) or manifest.get("kind") != MANIFEST_KIND:
        return False
    known = {MANIFEST_NAME, *manifest.get("files", ())}
    return all(path.relative_to(folder).as_posix() in known for path in folder.rglob("*") if path.is_file())


def _move(partial: Path, out: Path) -> None:
    old = out.with_name(f".{out.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if out.exists():
        out.rename(old)
    try:
        partial.rename(out)
    except OSError:
        if old.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)
