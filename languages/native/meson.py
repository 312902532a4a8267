"""Options of Meson projects that decide about tests."""

from __future__ import annotations

import re
from collections.abc import Iterator

from languages.source_tree import SourceTree
from taskdb.records import Evidence

_OPTION = re.compile(r"""^\s*option\s*\(\s*(?P<quote>['"])(?P<name>[\w.-]+)(?P=quote)(?P<rest>[^()]*)""", re.MULTILINE)
_TYPE = re.compile(r"""\btype\s*:\s*['"](boolean|feature)['"]""")
_TESTS = re.compile(r"^((build|enable|with)[-_]?)?(unit[-_]?)?(tests?|testing|testsuite|test[-_]suite)$")
_OFF = re.compile(
    r"^((build|enable|with)[-_]?)?(docs?|documentation|doxygen|gtk[-_]?doc|man(pages?)?|bench(marks?)?|fuzz\w*)$"
)
_VALUES = {
    ("boolean", True): "true",
    ("boolean", False): "false",
    ("feature", True): "enabled",
    ("feature", False): "disabled",
}
"""(type of an option, whether it is enabled) -> its value."""


def detect_options(tree: SourceTree) -> Iterator[Evidence]:
    """Yield `NAME=VALUE` for options that enable tests, and for documentation and benchmarks, which are not built."""
    for path in ("meson_options.txt", "meson.options"):
        text = tree.read(path)
        for match in _OPTION.finditer(text):
            kind = _TYPE.search(match["rest"])
            enables = _TESTS.match(match["name"]) is not None
            value = _VALUES.get((kind[1], enables)) if kind else None
            if value and (enables or _OFF.match(match["name"])):
                line = text.count("\n", 0, match.start("name")) + 1
                yield Evidence(choice="test", value=f"{match['name']}={value}", path=path, line=line)
