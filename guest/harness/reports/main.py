"""Command line of the converter, and the table of formats."""

from __future__ import annotations

import importlib
import os
import sys

from .core import ConversionError, ConvertedResults, ReportTree, iterate_files, parse_number

FORMATS = {
    "junit": ("xunit", "convert_xunit"),
    "jvm": ("jvm", "convert_jvm"),
    "gojson": ("gotest", "convert_gotest"),
    "cargo": ("rust", "convert_cargo"),
    "nextest": ("rust", "convert_nextest"),
    "jest": ("javascript", "convert_jest"),
    "mocha": ("javascript", "convert_mocha"),
    "bun": ("javascript", "convert_bun"),
    "nodetest": ("line_reports", "convert_lines"),
    "tap": ("tap", "convert_tap"),
    "ava": ("tap", "convert_ava"),
    "rspec": ("line_reports", "convert_rspec"),
    "minitest": ("line_reports", "convert_minitest"),
    "exunit": ("line_reports", "convert_exunit"),
    "ctest": ("cxx", "convert_ctest"),
    "googletest": ("cxx", "convert_googletest"),
    "catch2": ("cxx", "convert_catch2"),
    "cases": ("cxx", "convert_cases"),
    "make": ("recipes", "convert_make"),
    "meson": ("meson", "convert_meson"),
    "luaunit": ("xunit", "convert_luaunit"),
    "dart": ("dart", "convert_dart"),
    "lines": ("line_reports", "convert_lines"),
    "swift": ("swift", "convert_swift"),
    "trx": ("dotnet", "convert_trx"),
}
"""Format -> module and name of its function(outputs, tree, results); `outputs` are (name, content) of OUT_DIR's files.

A module is loaded when its format is read: an archive keeps no bytecode, and compiling all takes longer than reading.
"""


def convert_report(name, out, workdir, since=0.0):
    """Return the canonical report of the files in folder `out`.

    Raises:
        ConversionError: no file can be read as format `name`, or its reader has an error.
    """
    try:
        results = read_results(name, out, workdir, since)
    except ConversionError:
        raise
    except Exception as error:
        raise ConversionError("%s: %s" % (type(error).__name__, error)) from error
    if not results:
        raise ConversionError("no test is reported")
    return results.to_xml()


def read_results(name, out, workdir, since=0.0):
    """Return the results in the files of folder `out`. Any exception but ConversionError is an error of the reader.

    Raises:
        ConversionError: no file can be read as format `name`.
    """
    tree = ReportTree(workdir)
    results = ConvertedResults(tree)
    if name not in FORMATS:
        raise ConversionError("there is no format %s" % name)
    module, function = FORMATS[name]
    reader = importlib.import_module("." + module, __package__)
    outputs = list(iterate_files(out))
    if name == "jvm":
        outputs += iterate_files(tree.root, reader.REPORT_PATHS, since)
    getattr(reader, function)(outputs, tree, results)
    return results


def read_asset(name):
    """Return a reporter that a framework loads."""
    here = __file__
    loader = globals().get("__loader__")
    path = os.path.join(os.path.dirname(here), "assets", os.path.basename(name))
    return loader.get_data(path)


def main(words):
    """Convert a report or print an asset; return the exit code: 0, 2 for wrong usage, 3 for an unreadable report."""
    if len(words) == 3 and words[1] == "asset":
        try:
            sys.stdout.buffer.write(read_asset(words[2]))
        except OSError:
            sys.stderr.write("there is no asset %s\n" % words[2])
            return 2
        return 0
    since = parse_number(words[5]) if len(words) == 6 and words[4] == "--since" else 0.0
    if len(words) not in (4, 6):
        sys.stderr.write("usage: reports.pyz FORMAT OUT_DIR WORKDIR [--since SECONDS]\n")
        return 2
    try:
        content = convert_report(words[1], words[2], words[3], since)
    except ConversionError as error:
        sys.stderr.write("no report: %s\n" % error)
        return 3
    sys.stdout.buffer.write(content)
    return 0
