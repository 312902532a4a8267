"""Detection of tests in Swift packages, and the canary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from languages.base import Canary, read_packaged_file
from languages.source_tree import SourceTree
from languages.swift.manifest import is_manifest

TEST_FILE = r"(^|/)(Tests?/.*|[^/]*Tests/.*|[^/]*Tests?)\.swift$"
_EXCLUDED = re.compile(r"(^|/)(\.build|Fixtures?|Resources|Carthage|Pods|checkouts|__Snapshots__)/")
_DEFINES = re.compile(r"^[^/\n]*\bfunc\s+test\w*\s*\(\s*\)|^[^/\n]*@Test\b", re.MULTILINE)
_APPLE = (
    "AppKit|Cocoa|Combine|CoreData|CoreGraphics|CryptoKit|Darwin|ObjectiveC|SwiftData|SwiftUI|UIKit|WatchKit|WebKit|XPC"
)
_APPLE_ONLY = re.compile(
    rf"(?:\s*(?://[^\n]*\n|/\*.*?\*/))*\s*#if\s+\(?(?:canImport\((?:{_APPLE})\)|os\((?:macOS|OSX|iOS|tvOS|watchOS|visionOS)\)"
    r"|!\s*os\(Linux\))",
    re.DOTALL,
)
"""Matches a file that begins with a condition which is false on Linux."""


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return the files of the package in `folder`, without packages in it, that define tests for Linux; sorted."""
    prefix = f"{folder}/" if folder else ""
    inner = [path.rpartition("/")[0] + "/" for path in tree.entries if is_manifest(path) and "/" in path]
    inner = [place for place in inner if place.startswith(prefix) and place != prefix]
    paths = [path for path in tree.entries if path.startswith(prefix) and re.search(TEST_FILE, path)]
    paths = [path for path in paths if not path.startswith(tuple(inner)) and not _EXCLUDED.search(path)]
    texts = tree.read_many(sorted(paths))
    return [path for path, text in texts.items() if _DEFINES.search(text) and not _APPLE_ONLY.match(text)]


def _name_canary(_files: Sequence[str]) -> str:
    return '"Canary${word}Tests.swift"'


CANARY = Canary(
    name=_name_canary,
    body=read_packaged_file("languages.swift", "canary.sh"),
)
"""A class of XCTest, or a suite of Swift Testing where most neighbours are one."""
