"""JUnit XML of whatever makes it, and XML read safely: no entities, no depth or size without end."""

from __future__ import annotations

import re
from xml.parsers import expat

from .core import MAX_TESTS, Unreadable, number

MAX_DEPTH = 200
KEPT_TEXT = frozenset(("failure", "error", "skipped", "message", "warning", "Expanded", "Original", "Exception"))
KEPT_TEXT |= frozenset(("Name", "FullName", "FullCommandLine", "Value", "Path", "FatalErrorCondition", "Failure"))
MAX_TEXT = 4_000
_IN_CLASSES = re.compile(r"\.(php|java|kt|scala|groovy|cs|py|swift)$")


class Node:
    """An element."""

    __slots__ = ("attrs", "nodes", "parent", "tag", "text")

    def __init__(self, tag, attrs, parent):
        self.tag = tag
        self.attrs = attrs
        self.parent = parent
        self.nodes = []
        self.text = ""

    def get(self, name, default=""):
        """An attribute."""
        return self.attrs.get(name, default)

    def all(self, tag):
        """The elements below that are called `tag`, in document order."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            if node.tag == tag:
                yield node
            waiting.extend(reversed(node.nodes))

    def first(self, tag):
        """The child called `tag`, or None."""
        return next((node for node in self.nodes if node.tag == tag), None)

    def up(self):
        """The elements around it, the innermost first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


class _Builder:
    """Makes Nodes of what expat tells. An element that never ended is left out: the file is torn there."""

    def __init__(self):
        self.root = None
        self.node = None
        self.depth = 0
        self.count = 0

    def start(self, tag, attrs):
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH or self.count > 10 * MAX_TESTS:
            raise Unreadable("the XML is too deep or too large")
        self.node = Node(tag.rpartition(":")[2], attrs, self.node)

    def end(self, _tag):
        self.depth -= 1
        node, self.node = self.node, self.node.parent
        if node.parent is None:
            self.root = node
        else:
            node.parent.nodes.append(node)

    def data(self, text):
        if self.node is not None and self.node.tag in KEPT_TEXT and len(self.node.text) < MAX_TEXT:
            self.node.text += text[:MAX_TEXT]

    def close(self):
        while self.node is not None:
            self.end(None)


def refuse(*_):
    raise Unreadable("the XML declares a document type")


_UNPRINTABLE = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|&#(?:x0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]);|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]);)"
)


def parse(content):
    """The root Node of an XML document, torn off where it ceases to be XML; None when nothing of it is XML."""
    if not content.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n").startswith(b"<"):
        return None
    root, whole = _parse(content)
    if not whole and _UNPRINTABLE.search(content):  # runners print what their tests say, colours and all
        root = _parse(_UNPRINTABLE.sub(b"?", content))[0]
    return root


def _parse(content):
    """(root or None, whether the document is whole)."""
    builder = _Builder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError):
        builder.close()
        return builder.root, False
    return builder.root, True


def result(case):
    """(status, message) of a <testcase>."""
    found = ("passed", "")
    if case.get("status") == "disabled":
        return "skipped", "disabled"
    for node in case.nodes:
        text = node.get("message") or node.text
        if node.get("type").endswith("RiskyTestError"):
            continue  # PHPUnit does not fail them
        if node.tag == "error" or (node.tag == "failure" and node.get("type") == "testTimeoutFailure"):
            return "error", text or node.get("type")
        if node.tag == "failure":
            found = ("failed", text or node.get("type")) if found[0] != "failed" else found
        elif node.tag == "skipped" and found[0] == "passed":
            kind = "xfailed" if node.get("type") == "todo" else "skipped"
            found = (kind, text or node.get("type"))
    return found


def read(left, tree, results):
    """Every file that holds <testcase> elements, whoever wrote it."""
    for _name, content in left:
        root = parse(content)
        if root is not None:
            cases(root, tree, results)


def cases(root, tree, results):
    """Take in the test cases below `root`."""
    for case in root.all("testcase"):
        if case.get("status") == "notrun" or case.get("result") == "suppressed":
            continue
        file, name = identity(case, tree)
        status, message = result(case)
        heading, _, said = message.strip().partition("\n")
        if "::" + case.get("name") in heading and said:  # PHPUnit
            message = said
        whole = tree.found(case.get("name"))  # vitest, bats and node:test tell of broken files so
        if whole and (whole == file or "/" in case.get("name")) and status in ("error", "failed"):
            results.uncollected(whole, message)
        else:
            results.add(file, name, status, message, number(case.get("time")))


def identity(case, tree):
    """(file, name) of a <testcase>."""
    file = named_file(case, tree)
    classname, name = case.get("classname") or case.get("class"), case.get("name")
    suites = [suite.get("name") for suite in case.up() if suite.tag == "testsuite"][::-1]
    if classname in ("test", "suite"):  # node:test
        return file or "tests", " > ".join([*suites, name])
    if not file:
        return stand_in(classname, suites), name
    if _only_names_the_file(classname, file, tree) or name.startswith(classname):
        return file, name
    if _IN_CLASSES.search(file) and re.fullmatch(
        r"[\w$]+([.\\:/]+[\w$]+)*", classname
    ):  # a class: its package says what the file says
        last = re.split(r"[.\\:/]+", classname)[-1]
        return file, name if last == stem(file) else last + "::" + name
    return file, classname + " > " + name


def stand_in(classname, suites):
    """What stands for the file where no file is named: the class, or the outermost suite."""
    named = [suite for suite in suites if suite]
    return classname or (named[0] if named else "tests")


def stem(path):
    """`test_a` of `tests/test_a.py`."""
    return path.rpartition("/")[2].partition(".")[0]


def dotted(path):
    """`tests.test_a` of `./tests/test_a.py`."""
    inside = path.removeprefix("./")
    folder, _, name = inside.rpartition("/")
    return (folder + "/" + name.partition(".")[0]).lstrip("/").replace("/", ".")


def _only_names_the_file(classname, file, tree):
    if not classname or tree.found(classname) == file or dotted(file) == classname:
        return True
    return "." in classname and dotted(file).endswith("." + classname)


def named_file(case, tree):
    """The file that a test case, its class or a suite around it names; empty when none does."""
    around = [node for node in case.up() if node.tag in ("testsuite", "testsuites")]
    for node in [case, *around]:
        for key in ("file", "filepath", "filename"):
            if node.get(key):
                return tree.found(node.get(key)) or tree.relative(node.get(key)) or node.get(key)
    for text in [case.get("classname"), *[node.get("name") for node in around]]:
        if "." in text or "/" in text:
            found = tree.found(text)
            if found:
                return found
    return ""
