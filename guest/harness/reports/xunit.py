"""JUnit XML of any producer, and a safe XML parser: entities are rejected, depth and size are limited."""

from __future__ import annotations

import re
from xml.parsers import expat

from .core import MAX_TESTS, ConversionError, iterate_lines, names_exception, parse_number

MAX_DEPTH = 200
KEPT_TEXT = frozenset(("failure", "error", "skipped", "message", "warning", "Expanded", "Original", "Exception"))
KEPT_TEXT |= frozenset(("Name", "FullName", "FullCommandLine", "Value", "Path", "FatalErrorCondition", "Failure"))
KEPT_TEXT |= {"Message"}
MAX_TEXT = 4_000
_IN_CLASSES = re.compile(r"\.(php|java|kt|scala|groovy|cs|py|swift)$")


class XmlNode:
    """Element of an XML document."""

    __slots__ = ("attrs", "nodes", "parent", "tag", "text")

    def __init__(self, tag, attrs, parent):
        self.tag = tag
        self.attrs = attrs
        self.parent = parent
        self.nodes = []
        self.text = ""

    def get(self, name, default=""):
        """Return an attribute."""
        return self.attrs.get(name, default)

    def find_all(self, tag):
        """Yield the elements below that are named `tag`, in document order."""
        pending = [self]
        while pending:
            node = pending.pop()
            if node.tag == tag:
                yield node
            pending.extend(reversed(node.nodes))

    def find_child(self, tag):
        """Return the child named `tag`, or None."""
        return next((node for node in self.nodes if node.tag == tag), None)

    def iterate_ancestors(self):
        """Yield the enclosing elements, the innermost first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


class _NodeBuilder:
    """Builds nodes from expat's events. A <testcase> without an end is dropped: its failure may be what is missing."""

    def __init__(self):
        self.root = None
        self.node = None
        self.depth = 0
        self.count = 0

    def start(self, tag, attrs):
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH or self.count > 10 * MAX_TESTS:
            raise ConversionError("the XML is too deep or too large")
        self.node = XmlNode(tag.rpartition(":")[2], attrs, self.node)

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
            if self.node.tag == "testcase" and self.node.parent is not None:
                self.node = self.node.parent
            else:
                self.end(None)


def reject_doctype(*_):
    raise ConversionError("the XML declares a document type")


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_UNPRINTABLE = re.compile(
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|&#(?:x0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]);|0*(?:[0-8]|1[124-9]|2[0-9]|3[01]);)"
)


def replace_unprintable(text):
    """Return the text with `?` for the characters that `parse_xml` replaces."""
    return _CONTROL.sub("?", text)


def parse_xml(content):
    """Return the root node of an XML document up to its first error; None when nothing of it is XML."""
    if not content.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n").startswith(b"<"):
        return None
    root, is_complete = _parse_prefix(content)
    if not is_complete and _UNPRINTABLE.search(content):  # runners copy the tests' output, with control characters
        root = _parse_prefix(_UNPRINTABLE.sub(b"?", content))[0]
    return root


def _parse_prefix(content):
    """Return (root or None, whether the document is complete)."""
    builder = _NodeBuilder()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = reject_doctype
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError):
        builder.close()
        return builder.root, False
    return builder.root, True


def parse_status(case):
    """Return (status, message) of a <testcase>."""
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


def is_assertion_case(case):
    """Return whether a failed <testcase> failed by an assertion, as far as its report has that.

    Some producers report exceptions as failures, too. The first failure decides, by the type of the exception, else by
    the name with which its message or text begins.
    """
    node = next((node for node in case.nodes if node.tag == "failure"), None)
    if node is None:
        return True
    return not any(map(names_exception, (node.get("type"), node.get("message"), node.text)))


def convert_xunit(outputs, tree, results):
    """Convert every file that holds <testcase> elements."""
    for _name, content in outputs:
        root = parse_xml(content)
        if root is not None:
            convert_cases(root, tree, results)


_LUA_ERROR = re.compile(r"^lua\S*: (?P<message>.+)")


def convert_luaunit(outputs, tree, results):
    """Convert reports of LuaUnit, one `reports/FILE.xml` for each file, and `reports/FILE.txt` of a file without one.

    LuaUnit writes its report at the end, so that a file whose program stops before has none.
    """
    files = {name.removeprefix("reports/"): content for name, content in outputs if name.startswith("reports/")}
    for name, content in files.items():
        root = parse_xml(content) if name.endswith(".xml") else None
        file = tree.find_file(name.rpartition(".")[0])
        for case in root.find_all("testcase") if root is not None else ():
            status, message = parse_status(case)
            reason = next((node.get("type") for node in case.nodes if node.get("type")), message)
            results.add(file, case.get("name"), status, reason, parse_number(case.get("time")))
        if name.endswith(".txt") and not files.get(name[: -len("txt")] + "xml") and file:
            errors = [match["message"] for line in iterate_lines(content) if (match := _LUA_ERROR.match(line))]
            results.add_uncollected(file, errors[0] if errors else "the program ended without a report")


def convert_cases(root, tree, results):
    """Add the test cases below `root` to the results."""
    for case in root.find_all("testcase"):
        if case.get("status") == "notrun" or case.get("result") == "suppressed":
            continue
        file, name = identify_case(case, tree)
        status, message = parse_status(case)
        heading, _, detail = message.strip().partition("\n")
        if "::" + case.get("name") in heading and detail:  # PHPUnit
            message = detail
        broken_file = tree.find_file(case.get("name"))  # vitest, bats and node:test report broken files in this way
        if broken_file and (broken_file == file or "/" in case.get("name")) and status in ("error", "failed"):
            results.add_uncollected(broken_file, message)
        else:
            seconds, by_assertion = parse_number(case.get("time")), is_assertion_case(case)
            results.add(file, name, status, message, seconds, by_assertion=by_assertion)


def identify_case(case, tree):
    """Return (file, name) of a <testcase>."""
    file = find_named_file(case, tree)
    classname, name = case.get("classname") or case.get("class"), case.get("name")
    suites = [suite.get("name") for suite in case.iterate_ancestors() if suite.tag == "testsuite"][::-1]
    if classname in ("test", "suite"):  # node:test
        return file or "tests", " > ".join([*suites, name])
    if not file:
        return choose_substitute(classname, suites), name
    if _is_name_of_file(classname, file, tree) or name.startswith(classname):
        return file, name
    if _IN_CLASSES.search(file) and re.fullmatch(
        r"[\w$]+([.\\:/]+[\w$]+)*", classname
    ):  # a class, whose package repeats the file's path
        last = re.split(r"[.\\:/]+", classname)[-1]
        return file, name if last == file_stem(file) else last + "::" + name
    return file, classname + " > " + name


def choose_substitute(classname, suites):
    """Return the substitute for an unknown file: the class, or the outermost suite."""
    names = [suite for suite in suites if suite]
    return classname or (names[0] if names else "tests")


def file_stem(path):
    """Return `test_a` for `tests/test_a.py`."""
    return path.rpartition("/")[2].partition(".")[0]


def to_dotted(path):
    """Return `tests.test_a` for `./tests/test_a.py`."""
    inside = path.removeprefix("./")
    folder, _, name = inside.rpartition("/")
    return (folder + "/" + name.partition(".")[0]).lstrip("/").replace("/", ".")


def _is_name_of_file(classname, file, tree):
    if not classname or tree.find_file(classname) == file or to_dotted(file) == classname:
        return True
    return "." in classname and to_dotted(file).endswith("." + classname)


def find_named_file(case, tree):
    """Return the file that a test case, its class or an enclosing suite names; empty when none does."""
    suites = [node for node in case.iterate_ancestors() if node.tag in ("testsuite", "testsuites")]
    for node in [case, *suites]:
        for key in ("file", "filepath", "filename"):
            if node.get(key):
                return tree.find_file(node.get(key)) or tree.make_relative(node.get(key)) or node.get(key)
    for text in [case.get("classname"), *[node.get("name") for node in suites]]:
        if "." in text or "/" in text:
            found = tree.find_file(text)
            if found:
                return found
    return ""
