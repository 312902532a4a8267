"""A package that is slow by design, and a change that makes it faster, for performance tasks."""

from __future__ import annotations

from tests.helpers import TinyRepo

SLOW = '''"""Rows without their repetitions."""


def unique(rows):
    """The rows in their order, each once."""
    found = []
    for row in rows:
        if row not in found:
            found.append(row)
    return found
'''
BODY = SLOW[SLOW.index("    found = []") :]
FAST = SLOW.replace(BODY, "    return list(dict.fromkeys(rows))\n")
WRONG = SLOW.replace(BODY, "    return list(rows)\n")
CACHED = SLOW.replace("def unique(rows)", "def _unique(rows)") + (
    '\n\n_KNOWN = {}\n\n\ndef unique(rows):\n    """The same, remembered."""\n    key = tuple(rows)\n'
    "    if key not in _KNOWN:\n        _KNOWN[key] = _unique(rows)\n    return list(_KNOWN[key])\n"
)
OTHER_CLOCK = SLOW + (
    "\n\nimport time\n\nfor _name in ('time', 'perf_counter', 'process_time', 'monotonic'):\n"
    "    setattr(time, _name, lambda: 0.0)\n"
)
TESTS = """from rows import unique


def test_once():
    assert unique([1, 2, 1]) == [1, 2]


def test_empty():
    assert unique([]) == []
"""
MORE_TESTS = (
    TESTS
    + """

def test_many():
    rows = list(range(3000))
    assert unique(rows + rows) == rows
"""
)
MANY = "tests/test_rows.py::test_many"


def make_slow_rows(repo: TinyRepo) -> tuple[str, str]:
    """Commit a quadratic implementation and a linear one, with a test that passes on both; return (base, merge)."""
    base = repo.commit("Start", {"rows/__init__.py": SLOW, "tests/test_rows.py": TESTS})
    merge = repo.commit("Faster", {"rows/__init__.py": FAST, "tests/test_rows.py": MORE_TESTS})
    return base, merge


def make_module_patch(repo: TinyRepo, base: str, source: str) -> bytes:
    """Return the patch that replaces the module's source."""
    repo.git("checkout", "-q", "-f", base)
    repo.write({"rows/__init__.py": source})
    patch = repo.git("diff", "--binary").encode() + b"\n"
    repo.git("checkout", "-q", "-f", base)
    return patch
