"""The command line, and which function reads which format."""

from __future__ import annotations

import os
import sys

from . import cxx, gotest, javascript, jvm, lines, rust, tap, xunit
from .core import Results, Tree, Unreadable, number, sources

FORMATS = {
    "junit": xunit.read,
    "jvm": jvm.read,
    "gojson": gotest.read,
    "cargo": rust.read,
    "nextest": rust.nextest,
    "jest": javascript.jest,
    "mocha": javascript.mocha,
    "nodetest": lines.read,
    "tap": tap.read,
    "ava": tap.ava,
    "rspec": lines.rspec,
    "minitest": lines.minitest,
    "exunit": lines.exunit,
    "ctest": cxx.ctest,
    "googletest": cxx.googletest,
    "catch2": cxx.catch2,
    "lines": lines.read,
}
"""Format -> function(left, tree, results): `left` are the (name, content) pairs of OUT_DIR's files."""


def convert(name, out, workdir, since=0.0):
    """The canonical report of what was left in folder `out`.

    Raises:
        Unreadable: there is nothing that can be read as format `name`.
    """
    tree = Tree(workdir)
    results = Results(tree)
    if name not in FORMATS:
        raise Unreadable("there is no format %s" % name)
    left = list(sources(out))
    if name == "jvm":
        left += sources(tree.root, jvm.PLACES, since)
    try:
        FORMATS[name](left, tree, results)
    except Unreadable:
        raise
    except Exception as error:
        raise Unreadable("%s: %s" % (type(error).__name__, error)) from error
    if not results:
        raise Unreadable("no test is told of")
    return results.to_xml()


def asset(name):
    """A reporter that a framework loads."""
    here = __file__
    loader = globals().get("__loader__")
    path = os.path.join(os.path.dirname(here), "assets", os.path.basename(name))
    return loader.get_data(path)


def main(words):
    """The exit code: 0, 2 for a wrong command line, 3 for a report that cannot be read."""
    if len(words) == 3 and words[1] == "asset":
        try:
            sys.stdout.buffer.write(asset(words[2]))
        except OSError:
            sys.stderr.write("there is no asset %s\n" % words[2])
            return 2
        return 0
    since = number(words[5]) if len(words) == 6 and words[4] == "--since" else 0.0
    if len(words) not in (4, 6):
        sys.stderr.write("usage: reports.pyz FORMAT OUT_DIR WORKDIR [--since SECONDS]\n")
        return 2
    try:
        content = convert(words[1], words[2], words[3], since)
    except Unreadable as error:
        sys.stderr.write("no report: %s\n" % error)
        return 3
    sys.stdout.buffer.write(content)
    return 0
