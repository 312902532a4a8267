"""Detection of tests in Scala projects, and the canary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from languages.base import Canary, read_packaged_file
from languages.source_tree import SourceTree

TEST_FILE = r"(^|/)src/(test|it)/.*\.scala$|^([^/]+/)?test/.*\.scala$"
_DEFINES = re.compile(
    r"^\s*(?:final\s+)?(?:class|object)\s+\w+[^{]*?\b(?:extends|with)\s+[\w.]*(Suite|Spec|FunSuite|FlatSpec|WordSpec|FreeSpec"
    r"|FeatureSpec|PropSpec|Specification|Properties|TestSuite|Tests|ZIOSpecDefault|Test|DefaultRunnableSpec|\w*Suite\w*"
    r"|\w*Spec\w*)\b|^\s*@(?:org\.junit\.)?Test\b",
    re.MULTILINE,
)


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return files of unit tests below a folder that define a suite, sorted."""
    prefix = f"{folder}/" if folder else ""
    paths = sorted(path for path in tree.entries if path.startswith(prefix) and re.search(TEST_FILE, path))
    paths = [path for path in paths if not re.search(r"(^|/)src/it/|(^|/)(sbt-test|resources)/", path)]
    return [path for path, text in tree.read_many(paths).items() if _DEFINES.search(text)]


def _name_canary(files: Sequence[str]) -> str:
    stems = [PurePosixPath(file).stem for file in files if file.endswith(".scala")]
    ending = next(
        (e for e in ("Suite", "Spec", "Test", "Tests") if stems and all(s.endswith(e) for s in stems)), "Suite"
    )
    return f'"Canary${{word}}{ending}.scala"'


CANARY = Canary(
    name=_name_canary,
    body=read_packaged_file("languages.scala", "canary.sh"),
)
"""A suite in the package and framework of its neighbours."""
