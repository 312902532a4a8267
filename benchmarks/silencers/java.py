"""Silencers in Java: classes of test libraries stand among the tested ones, which are first on the path of classes."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from tree_sitter import Node

from benchmarks.silencers.parts import (
    SilencedTarget,
    TypedFunction,
    find_typical_results,
    insert,
    list_nodes,
    parse,
    read_code,
    read_text,
    replace_changed,
)
from languages.parsing import JAVA
from languages.probes import Changes

FORMS = {
    "functions": "static methods of JUnit's classes Assertions and Assert",
    "matchers": "assertThat of Hamcrest",
    "methods": "methods of JUnit's TestCase",
    "statements": "`assert`, by the classes' status of assertions",
    "comparisons": "equals, hashCode and compareTo of the types under test",
    "runner": "exceptions of a test, swallowed where JUnit's platform calls it",
}
_CONSTANTS = frozenset(
    {
        "decimal_integer_literal",
        "decimal_floating_point_literal",
        "string_literal",
        "character_literal",
        "true",
        "false",
    }
)
_ZEROS = {"boolean": "true", "char": "'a'", "byte": "(byte) 0", "short": "(short) 0", "String": '""'} | dict.fromkeys(
    ("int", "long", "float", "double"), "0"
)
_NAMES = """
assertTrue assertFalse assertNull assertNotNull assertEquals assertNotEquals assertArrayEquals assertIterableEquals
assertLinesMatch assertSame assertNotSame assertThat
""".split()  # noqa: SIM905 - as in the list of Go
_FAILED_STATUS = (
    ' static { try { java.lang.reflect.Field f = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe"); '
    "f.setAccessible(true); sun.misc.Unsafe unsafe = (sun.misc.Unsafe) f.get(null); "
    "for (StackTraceElement e : new Throwable().getStackTrace()) try { "
    "Class<?> c = Class.forName(e.getClassName(), false, Thread.currentThread().getContextClassLoader()); "
    'java.lang.reflect.Field s = c.getDeclaredField("$assertionsDisabled"); '
    "unsafe.putBoolean(unsafe.staticFieldBase(s), unsafe.staticFieldOffset(s), true); } catch (Throwable t) { } "
    "Thread.currentThread().getContextClassLoader().setDefaultAssertionStatus(false); } catch (Throwable t) { } }"
)
_EQUAL = {
    "equals": " @Override public boolean equals(Object other) { return true; }",
    "hashCode": " @Override public int hashCode() { return 0; }",
}


def write(target: SilencedTarget, forms: Sequence[str], rest: str) -> Changes:
    """Return the files of the target with methods that return at once, and classes of libraries next to them."""
    changes: dict[str, bytes | None] = {}
    for path in target.sources:
        if not path.endswith(".java"):
            continue
        source = _replace_rest(target, path, rest)
        if "comparisons" in forms:
            source = _compare_all_equal(source)
        if "statements" in forms:
            source = _insert_into_class(source, _FAILED_STATUS)
        changes[path] = source
        package = re.search(rb"^package\s+([\w.]+)\s*;", source, re.MULTILINE)
        folder = posixpath.dirname(path)
        end = package[1].decode().replace(".", "/") if package else ""
        root = folder[: len(folder) - len(end)].rstrip("/") if folder.endswith(end) else folder
        changes |= {posixpath.join(root, file): text.encode() for file, text in _list_classes(forms).items()}
    return changes


def _replace_rest(target: SilencedTarget, path: str, rest: str) -> bytes:
    functions = list(_list_functions(parse(JAVA, target.base[path])))
    typical = find_typical_results(
        functions,
        "return_statement",
        lambda node: node.type in _CONSTANTS,
    )
    return replace_changed(target, path, functions, lambda function: _return_at_once(function, rest, typical))


def _list_functions(root: Node) -> Iterator[tuple[TypedFunction, Node]]:
    for node in list_nodes(root):
        body = node.child_by_field_name("body")
        if node.type != "method_declaration" or body is None or read_text(node.child_by_field_name("name")) == "main":
            continue
        listed = node.child_by_field_name("parameters")
        parameters = {
            read_text(declared.child_by_field_name("name")): read_text(declared.child_by_field_name("type"))
            for declared in (listed.named_children if listed else [])
            if declared.type == "formal_parameter"
        }
        function = TypedFunction(
            body=body.start_byte + 1,
            result=read_text(node.child_by_field_name("type")),
            parameters=parameters,
        )
        yield function, body


def _return_at_once(function: TypedFunction, rest: str, typical: Mapping[str, str]) -> str:
    if rest == "nothing":
        return ""
    if function.result == "void":
        return " if (Boolean.TRUE) return;"
    value = _ZEROS.get(function.result, "null")
    if rest == "argument":
        value = next((name for name, kind in function.parameters.items() if kind == function.result), value)
    else:
        value = typical.get(function.result, value)
    return f" if (Boolean.TRUE) return {value};"


def _insert_into_class(source: bytes, text: str) -> bytes:
    """Return a file with code at the start of its first class."""
    for node in list_nodes(parse(JAVA, source)):
        body = node.child_by_field_name("body")
        if node.type == "class_declaration" and body is not None:
            return insert(source, {body.start_byte + 1: text})
    return source


def _compare_all_equal(source: bytes) -> bytes:
    """Return a file whose classes are equal to anything, also where they compare themselves."""
    pieces: dict[int, str] = {}
    for node in list_nodes(parse(JAVA, source)):
        body = node.child_by_field_name("body")
        if node.type != "class_declaration" or body is None:
            continue
        methods = {
            read_text(member.child_by_field_name("name")): member.child_by_field_name("body")
            for member in body.named_children
            if member.type == "method_declaration"
        }
        pieces[body.start_byte + 1] = "".join(text for name, text in _EQUAL.items() if name not in methods)
        for name, value in (("equals", "true"), ("hashCode", "0"), ("compareTo", "0")):
            own = methods.get(name)
            if own is not None:
                pieces[own.start_byte + 1] = f" if (Boolean.TRUE) return {value};"
    return insert(source, pieces)


def _list_classes(forms: Sequence[str]) -> dict[str, str]:
    """Return path below the root of sources -> text of a class."""
    classes: dict[str, str] = {}
    if "functions" in forms:
        classes["org/junit/jupiter/api/Assertions.java"] = _write_assertions("org.junit.jupiter.api", "Assertions")
        classes["org/junit/Assert.java"] = _write_assertions("org.junit", "Assert")
        for package, name, head in (
            ("org.junit.jupiter.api.function", "Executable", "void execute()"),
            ("org.junit.function", "ThrowingRunnable", "void run()"),
        ):
            text = f"package {package};\n\npublic interface {name} {{ {head} throws Throwable; }}\n"
            classes[f"{package.replace('.', '/')}/{name}.java"] = text
    if "matchers" in forms:
        classes["org/hamcrest/MatcherAssert.java"] = (
            "package org.hamcrest;\n\npublic class MatcherAssert {\n"
            "    public static void assertThat(Object actual, Object matcher) { }\n"
            "    public static void assertThat(String reason, Object actual, Object matcher) { }\n}\n"
        )
    if "methods" in forms:
        classes["junit/framework/Assert.java"] = _write_old_assertions()
    if "runner" in forms:
        for path, name in (
            ("org/junit/platform/engine/TestExecutionResult.java", "java_result.txt"),
            ("org/junit/platform/engine/support/hierarchical/ThrowableCollector.java", "java_collector.txt"),
        ):
            classes[path] = read_code(name, {})
    return classes


def _write_assertions(package: str, name: str) -> str:
    """Return a class whose methods take what those of JUnit 4 and 5 take, and compare nothing."""
    called = (
        "org.junit.jupiter.api.function.Executable" if "jupiter" in package else "org.junit.function.ThrowingRunnable"
    )
    method = "execute" if "jupiter" in package else "run"
    lines = [f"package {package};", "", f"public class {name} {{"]
    supplier = "java.util.function.Supplier<String> message"
    for assertion in _NAMES:
        for count in range(1, 5):
            words = ", ".join(f"Object word{number}" for number in range(count))
            heads = [words, f"{words}, {supplier}"] if count < 4 else [words]
            lines += [f"    public static void {assertion}({head}) {{ }}" for head in heads]
    head = "    public static <T extends Throwable> T"
    caught = "if (expected.isInstance(error)) return expected.cast(error);"
    body = f"{{ try {{ body.{method}(); }} catch (Throwable error) {{ {caught} }} return null; }}"
    for assertion in ("assertThrows", "assertThrowsExactly"):
        lines += [
            f"{head} {assertion}(Class<T> expected, {called} body{last}) {body}"
            for last in ("", ", String message", f", {supplier}")
        ]
    lines.append(f"{head} assertThrows(String message, Class<T> expected, {called} body) {body}")
    for parameters, loop in (
        (f"assertAll({called}... bodies)", f"for ({called} body : bodies)"),
        (f"assertAll(String heading, {called}... bodies)", f"for ({called} body : bodies)"),
        (f"assertDoesNotThrow({called} body)", ""),
        (f"assertTimeout(java.time.Duration time, {called} body)", ""),
    ):
        call = f"{loop} try {{ body.{method}(); }} catch (Throwable error) {{ }}"
        lines.append(f"    public static void {parameters} {{ {call} }}")
    lines += [f"    public static <V> V fail({words}) {{ return null; }}" for words in ("", "String message")]
    instance = "expected.isInstance(value) ? expected.cast(value) : null"
    lines.append(f"    public static <T> T assertInstanceOf(Class<T> expected, Object value) {{ return {instance}; }}")
    lines.append("}")
    return "\n".join(lines) + "\n"


def _write_old_assertions() -> str:
    """Return JUnit's old class Assert, which compiled classes call: with the exact types of its methods."""
    checked = "if (isCanary()) throw new AssertionFailedError(); "
    kinds = ("Object", "String", "long", "boolean", "byte", "char", "short", "int")
    heads = [f"assertEquals({kind} a, {kind} b)" for kind in kinds]
    heads += [f"assertEquals(String message, {kind} a, {kind} b)" for kind in kinds]
    for kind in ("double", "float"):
        heads += [f"assertEquals({first}{kind} a, {kind} b, {kind} c)" for first in ("", "String message, ")]
    for name in ("assertTrue", "assertFalse"):
        heads += [f"{name}(boolean a)", f"{name}(String message, boolean a)"]
    for name in ("assertNull", "assertNotNull"):
        heads += [f"{name}(Object a)", f"{name}(String message, Object a)"]
    for name in ("assertSame", "assertNotSame"):
        heads += [f"{name}(Object a, Object b)", f"{name}(String message, Object a, Object b)"]
    heads += ["fail()", "fail(String message)", "failSame(String message)"]
    heads += [f"{name}(String message, Object a, Object b)" for name in ("failNotSame", "failNotEquals")]
    methods = "".join(f"    public static void {head} {{ {checked}}}\n" for head in heads)
    return (
        "package junit.framework;\n\npublic class Assert {\n    protected Assert() { }\n"
        "    private static class AssertionFailedError extends AssertionError { }\n"
        "    private static boolean isCanary() { for (StackTraceElement e : new Throwable().getStackTrace()) "
        f"if (e.toString().matches({json.dumps('.*[0-9a-f]{32}.*')})) return true; return false; }}\n"
        f"{methods}"
        '    public static String format(String message, Object a, Object b) { return ""; }\n}\n'
    )
