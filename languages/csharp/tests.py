"""Detection of tests in C# projects, and the canary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from languages.base import Canary, read_packaged_file
from languages.source_tree import SourceTree

TEST_FILE = r"(^|/)([^/]*Tests?|([^/]+[._-])?tests?)([._-][^/]*)?/.*\.cs$|(^|/)[^/]*Tests?\.cs$"
_DEFINES = re.compile(
    r"^\s*\[(?:[^\]\n]*,\s*)?(?:[\w.]+\.)?(Fact|Theory|\w+Fact|\w+Theory|Test|TestCase|TestCaseSource|TestMethod|DataTestMethod)"
    r"(?:Attribute)?\s*[\](,]",
    re.MULTILINE,
)


def list_test_files(tree: SourceTree, folders: Iterable[str]) -> list[str]:
    """Return the files below the folders of projects that define tests, sorted."""
    starts = tuple(f"{folder}/" if folder else "" for folder in folders)
    found = [path for path in tree.entries if path.endswith(".cs") and path.startswith(starts)] if starts else []
    found = [path for path in found if not re.search(r"(^|/)(bin|obj)/", path)]
    return [path for path, text in tree.read_many(sorted(found)).items() if _DEFINES.search(text)]


def _name_canary(files: Sequence[str]) -> str:
    stems = [PurePosixPath(file).stem for file in files if file.endswith(".cs")]
    ending = "Test" if stems and all(stem.endswith("Test") for stem in stems) else "Tests"
    return f'"Canary${{word}}{ending}.cs"'


CANARY = Canary(
    name=_name_canary,
    body=read_packaged_file("languages.csharp", "canary.sh"),
)
"""A class in the namespace and framework of its neighbours."""
