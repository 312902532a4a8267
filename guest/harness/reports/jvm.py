"""JUnit XML of Surefire, Failsafe, Gradle and sbt, mapped to files by class; compiler errors from the build's text."""

from __future__ import annotations

import re

from . import xunit
from .core import find_compiler_errors, parse_number

REPORT_PATHS = re.compile(
    r"^(?!(?:.*/)?(?:target|build/tmp)/.*/(?:target|build)/)(?:.*/)?"
    r"(?:target/(?:surefire|failsafe)-reports/TEST-|target/(?:scala-[^/]+/)?test-reports/|build/test-results/(?:.+/)?)[^/]+\.xml$"
)
"""Paths of the build tools' reports in the tree, but not those of projects that tests built below their output.

Next to Surefire's own reports TestNG writes others, such as `testng-failed.xml`, a suite of the tests that failed.
"""

SUFFIXES = (".java", ".kt", ".scala", ".groovy")
_SOURCE = re.compile(r"\.(?:java|kt|scala|groovy)$")
_PACKAGE = re.compile(r"^[ \t]*package\s+([\w.]+)", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]*(?:[\w@()\"]+[ \t]+)*(?:class|object|interface)[ \t]+(\w+)", re.MULTILINE)
# [ERROR] /t/src/test/java/a/BTest.java:[3,8] error: ...   |   /t/src/test/java/a/BTest.java:3: error: ...
# e: file:///t/src/test/kotlin/a/B.kt:3:8 Unresolved ...   |   [error] /t/src/test/scala/a/B.scala:3:8: not found
_COMPILER = re.compile(
    r"^(?:\[ERROR\] |\[error\] |e: )?(?:file://)?(?P<file>/[^:\[\]\s]+\.(?:java|kt|scala|groovy)):"
    r"(?:\[\d+,\d+\]|(?:\d+|\s*\(\d+, \d+\))(?::\d+)?:?)\s*(?:error: )?(?P<message>.+)$"
)


def convert_jvm(outputs, tree, results):
    """Convert reports by class, and compiler errors of test files."""
    classes = JvmClasses(tree)
    for place, content in outputs:
        root = xunit.parse_xml(content)
        if root is None:
            _add_compiler_errors(content, tree, results)
            continue
        for case in root.find_all("testcase"):
            _convert_case(case, place, classes, results)


def _convert_case(case, place, classes, results):
    suites = [node.get("name") for node in case.iterate_ancestors() if node.tag == "testsuite"]
    suite = next((name for name in suites if name), "")
    classname, name = case.get("classname") or suite, case.get("name")
    file, inner = classes.find_source(classname, place)
    if not file and suite and classname != suite:  # a display name
        file, inner = classes.find_source(suite, place)
    status, message = xunit.parse_status(case)
    name = re.sub(r"\(\)", "", name, count=1)
    if not name or name == classname:  # a failure before or after all tests of the class
        name = "(class)"
    name = inner + "::" + name if inner else name
    seconds, by_assertion = parse_number(case.get("time")), xunit.is_assertion_case(case)
    results.add(file or classname, name, status, message, seconds, by_assertion=by_assertion)


def _add_compiler_errors(content, tree, results):
    for file, message in find_compiler_errors(content, _COMPILER, tree):
        if _is_test(file) and not message.startswith("warning"):
            results.add_uncollected(file, message, printed=True)


def _is_test(file):
    folders = file.split("/")[:-1]
    return any(re.search(r"(?i)^(it|tests?|.*[a-z]Tests?)$", folder) for folder in folders) or bool(
        re.search(r"(Tests?|IT|Spec|Suite)\.\w+$", file)
    )


class JvmClasses:
    """Map from classes to source files, preferring the module of the report."""

    def __init__(self, tree):
        self.tree = tree
        self.declared = None
        self.cache = {}

    def find_source(self, classname, place):
        """Return (file, nested classes) of `a.b.CTest$Inner`; ("", "") when there is none."""
        module = place.partition("/target/")[0].partition("/build/")[0]
        module = "" if place.startswith(("target/", "build/")) else module
        key = (classname, module)
        if key not in self.cache:
            self.cache[key] = self._find_source(classname, module)
        return self.cache[key]

    def _find_source(self, classname, module):
        parts = re.split(r"\.", classname.split("$")[0])
        inner = [part for part in classname.split("$")[1:] if part]
        for end in range(len(parts), max(len(parts) - 3, 0), -1):  # some tools write a nested class with a dot
            package, name = parts[: end - 1], parts[end - 1]
            folder = "/".join(package)
            candidates = [path for suffix in SUFFIXES for path in self.tree.find_named(name + suffix)]
            exact = [
                path
                for path in candidates
                if ("/" + path).endswith("/" + "/".join(parts[:end]) + path[path.rindex(".") :])
            ]
            declared = exact or [path for path in candidates if self._read_package(path) == ".".join(package)]
            if declared:
                return _select_nearest(declared, module), "::".join(parts[end:] + inner)
            declared = [
                path for path in self._find_declaring(name) if self._read_package(path) == folder.replace("/", ".")
            ]
            if declared:
                return _select_nearest(declared, module), "::".join(parts[end - 1 :] + inner)
        return "", ""

    def _read_package(self, path):
        match = _PACKAGE.search(self.tree.read_text(path))
        return match[1] if match else ""

    def _find_declaring(self, name):
        """Return files of another name that declare class `name`."""
        if self.declared is None:
            self.declared = {}
            for path in [path for path in self.tree.files if _SOURCE.search(path)][:20_000]:
                for match in _CLASS.finditer(self.tree.read_text(path)):
                    self.declared.setdefault(match[1], []).append(path)
        return self.declared.get(name, [])


def _select_nearest(paths, module):
    """Return the path in the report's own module; of several the one in a folder of tests, then the first."""
    inside = [path for path in paths if module and path.startswith(module + "/")] or paths
    return min(inside, key=lambda path: ("/test" not in "/" + path.lower(), len(path), path))
