"""Check that a tree has the structure a task requires: `structure_check.py RULES.json TREE` prints violations as JSON.

RULES is an object: `required`, `gone` and `kept` are lists of [path, name] of definitions; `old_modules` and
`new_modules` are lists of imported modules, `old_packages` and `new_packages` of names in manifests. Python files are
parsed; in other languages definitions are found by their shape, outside of comments and strings. Exit code 1 when there
is a violation, 2 for an unreadable tree.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Rules = Mapping[str, Any]
MAX_FILE_BYTES = 2_000_000
"""Larger files are not read."""
SOURCE_SUFFIXES = (
    (".py", ".pyi", ".go", ".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts", ".rs", ".java", ".kt", ".rb")
    + (".php", ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".ipp", ".rake")
)  # fmt: skip
MANIFESTS = re.compile(
    r"(^|/)(pyproject\.toml|setup\.(py|cfg)|requirements[\w.-]*\.(txt|in)|Pipfile|package\.json|go\.mod|Cargo\.toml|Gemfile|"
    r"[\w.-]+\.gemspec|composer\.json|pom\.xml|build\.gradle(\.kts)?)$"
)
_TEST_FOLDERS = re.compile(r"(^|/)(tests?|testing|spec|__tests__|fixtures|vendor|node_modules|\.git)(/|$)")
_HASH_COMMENTS = (".rb", ".rake", ".php")
_C_NOISE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.){2,}'|`(?:[^`\\]|\\.)*`", re.DOTALL
)
_RUST_NOISE = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
"""A single quote begins a lifetime there, too."""
_HASH_NOISE = re.compile(r"#[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_KEYWORDS = (
    r"(?:def|func|fn|fun|function\s*\*?|sub|class|struct|enum|interface|trait|type|record|union|module|mod|namespace|"
    r"object|macro_rules!|const|let|var|val|static|impl)"
)
_CONTROL = r"(?:if|for|while|switch|return|else|match|case|new|await|throw|go|defer|elif|unless|until|yield|in|not)\b"

_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises; the last two for deeply nested code, which Python cannot run either."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
_BLOCKS = (ast.If, ast.Try, ast.With)
_HEAD_END = r"\([^;{}]*\)[^;{}()]*\{"
"""Parameters of a function up to its body."""


def find_violations(rules: Rules, read: Callable[[str], str | None], paths: Sequence[str]) -> list[str]:
    """Return a line for each rule that a tree violates.

    Args:
        rules: as described above; a missing key is an empty list.
        read: returns the text of a file, None where there is none.
        paths: all files of the tree.
    """
    found: list[str] = []
    for key, wanted, text in (
        ("required", True, "is not defined"),
        ("gone", False, "is still defined"),
        ("kept", True, "is no longer defined"),
    ):
        found += [
            f"{path}: {name} {text}"
            for path, name in rules.get(key, ())
            if has_definition(path, read(path) or "", name) is not wanted
        ]
    return [*found, *_check_modules(rules, read, paths), *_check_packages(rules, read, paths)]


def _check_modules(rules: Rules, read: Callable[[str], str | None], paths: Sequence[str]) -> Iterator[str]:
    """Yield the violations of the rules on imported modules."""
    old, new = (list(map(str, rules.get(key, ()))) for key in ("old_modules", "new_modules"))
    sources = [path for path in paths if path.endswith(SOURCE_SUFFIXES) and not _TEST_FOLDERS.search(path)]
    texts = {path: read(path) or "" for path in sources} if old or new else {}
    for path, text in texts.items():
        yield from (f"{path}: {module} is still imported" for module in old if imports_module(path, text, module))
    for module in sorted(new):
        if not any(imports_module(path, text, module) for path, text in texts.items()):
            yield f"{module} is not imported"
        elif not uses_module(texts, module):
            yield f"{module} is imported and not used"


def _check_packages(rules: Rules, read: Callable[[str], str | None], paths: Sequence[str]) -> Iterator[str]:
    """Yield the violations of the rules on manifests."""
    old, new = (list(map(str, rules.get(key, ()))) for key in ("old_packages", "new_packages"))
    missing = set(new)
    for path in paths if old or new else ():
        if not MANIFESTS.search(path) or _TEST_FOLDERS.search(path):
            continue
        text = read(path) or ""
        for package in old:
            if names_package(text, package):
                yield f"{path}: {package} is still required"
        missing -= {package for package in missing if names_package(text, package)}
    for package in sorted(missing):
        yield f"{package} is not required"


def has_definition(path: str, text: str, name: str) -> bool:
    """Return whether a file defines a name; in Python qualified (`Cart.total`), elsewhere by its last part."""
    if path.endswith((".py", ".pyi")):
        return name in list_python_definitions(text)
    last = re.escape(name.rpartition(".")[2])
    noise = _HASH_NOISE if path.endswith(_HASH_COMMENTS) else _RUST_NOISE if path.endswith(".rs") else _C_NOISE
    code = noise.sub(" ", text)
    patterns = (
        rf"(?<![\w.]){_KEYWORDS}\s+(?:self\.)?{last}(?!\w)",
        rf"\bfunc\s*\([^)]*\)\s*{last}(?!\w)",
        rf"(?<!\w){last}\s*[:=]\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|\w+\s*=>)",
        rf"^(?![ \t]*{_CONTROL})[ \t]*(?:[\w<>\[\],.*&:?@ \t]+[ \t*&])?{last}\s*(?:<[^>]*>\s*)?{_HEAD_END}",
    )
    return any(re.search(pattern, code, re.MULTILINE) for pattern in patterns)


def list_python_definitions(text: str) -> frozenset[str]:
    """Return the qualified names of functions, classes and assigned names of a module, without those in functions."""
    try:
        tree = ast.parse(text)
    except _UNPARSABLE:
        return frozenset()
    found: set[str] = set()
    todo: list[tuple[str, ast.AST]] = [("", node) for node in tree.body]
    while todo:
        prefix, node = todo.pop()
        if isinstance(node, _FUNCTIONS):
            found.add(prefix + node.name)
        elif isinstance(node, ast.ClassDef):
            found.add(prefix + node.name)
            todo += [(f"{prefix}{node.name}.", child) for child in node.body]
        elif isinstance(node, _ASSIGNMENTS):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(prefix + target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, _BLOCKS):
            todo += [(prefix, child) for child in ast.iter_child_nodes(node)]
        elif isinstance(node, ast.ExceptHandler):
            todo += [(prefix, child) for child in node.body]
    return frozenset(found)


def list_modules(path: str, text: str, *, with_names: bool = True) -> frozenset[str]:
    """Return the modules that a file imports, as written.

    `with_names`: also what Python imports from them, which may be modules, too.
    """
    if path.endswith((".py", ".pyi")):
        return frozenset(_list_python_modules(text, with_names=with_names))
    patterns = (
        r"""\b(?:from|import|require|require_relative|load)\s*\(?\s*['"]([^'"\n]+)['"]""",
        r"""^\s*(?:import\s+)?(?:_|\.|[\w]+)?\s*"([\w./-]+)"\s*$""" if path.endswith(".go") else r"(?!)",
        r"^\s*(?:pub\s+)?use\s+([\w]+)(?:::|;)" if path.endswith(".rs") else r"(?!)",
        r"^\s*import\s+(?:static\s+)?([\w.]+)" if path.endswith((".java", ".kt")) else r"(?!)",
        r"""^\s*#\s*include\s*[<"]([^>"]+)[>"]""",
    )
    return frozenset(found for pattern in patterns for found in re.findall(pattern, text, re.MULTILINE))


def imports_module(path: str, text: str, module: str) -> bool:
    """Return whether a file imports a module or one below it."""
    return any(one == module or one.startswith((f"{module}.", f"{module}/")) for one in list_modules(path, text))


def uses_module(texts: Mapping[str, str], module: str) -> bool:
    """Return whether a file refers to a name that it imports from a module, or hands the name on to a file that does.

    `texts`: path -> text of source files. An import that binds no name (a wildcard, `#include`, `require` of Ruby and
    PHP) counts as a use, because nothing shows which names are the module's.
    """
    return any(
        _uses_name_of(path, text, module) or _is_handed_on(texts, path, module)
        for path, text in texts.items()
        if imports_module(path, text, module)
    )


def _uses_name_of(path: str, text: str, module: str) -> bool:
    """Return whether a file refers to a name that it imports from a module."""
    suffix = os.path.splitext(path)[1]
    if suffix in (".py", ".pyi"):
        bound = _list_bound_names(text, module)
        return bool(bound & ({"*"} | {node.id for node in _walk_python(text) if isinstance(node, ast.Name)}))
    if suffix == ".go":  # the compiler rejects imports that are not used, but for `_ "module"`
        return re.search(rf'(?<!_)(?<!_[ \t])"{re.escape(module)}["/]', text) is not None
    if suffix not in _IMPORT_STATEMENTS:
        return True
    statements, uses = (
        re.compile(pattern.replace("MODULE", re.escape(module)), re.MULTILINE) for pattern in _IMPORT_STATEMENTS[suffix]
    )
    rest = (_RUST_NOISE if suffix == ".rs" else _C_NOISE).sub(" ", statements.sub(" ", text))
    names = [name for one in statements.findall(text) for name in _split_names(suffix, one)]
    return uses.search(rest if suffix == ".rs" else text) is not None or any(
        name == "*" or re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", rest) for name in names
    )


_QUOTED = r"""['"]MODULE(?:/[^'"]*)?['"]"""
_JAVASCRIPT_IMPORTS = (
    rf"""^\s*import\b[^;'"]*{_QUOTED}|^\s*(?:const|let|var)\b[^;=]*=\s*require\(\s*{_QUOTED}\s*\)(?!\s*[.(\[])""",
    rf"""^\s*export\b[^;'"]*{_QUOTED}|[\w=(,:?&|]\s*require\(\s*{_QUOTED}\s*\)\s*[.(\[]""",
)
_JAVA_IMPORTS = (r"^\s*import\s+(?:static\s+)?MODULE\b[^;\n]*", r"(?!)")
_IMPORT_STATEMENTS = {
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), _JAVASCRIPT_IMPORTS),
    **dict.fromkeys((".java", ".kt"), _JAVA_IMPORTS),
    ".rs": (r"^\s*(?:use|extern\s+crate)\s+MODULE\b[^;]*;", r"(?<!\w)MODULE::|\bpub(?:\([^)]*\))?\s+use\s+MODULE\b"),
}
"""Suffix -> patterns of imports that bind names of MODULE, and of uses without such a name."""


def _split_names(suffix: str, statement: str) -> list[str]:
    """Return the names that an import binds; `*` for an unknown number."""
    if suffix in (".java", ".kt"):
        return re.findall(r"[\w*]+", statement)[-1:]
    body = re.sub(r"""=?\s*(?:\bfrom\b|require\()?\s*['"][^'"]*['"]\s*\)?|\w+\s*::""", " ", statement)
    body = re.sub(r"[\w$*]+\s*(?:\bas\b|:)", " ", body)  # the new name counts
    skipped = {"import", "type", "typeof", "const", "let", "var", "use", "crate", "extern", "self", "default"}
    return [word for word in re.findall(r"[\w$*]+", body) if word not in skipped]


def _walk_python(text: str) -> Iterator[ast.AST]:
    """Yield all nodes of a Python file; none where it cannot be parsed."""
    try:
        yield from ast.walk(ast.parse(text))
    except _UNPARSABLE:
        return


def _list_bound_names(text: str, module: str) -> frozenset[str]:
    """Return the names that the imports of a module, or of modules in it, bind in a Python file."""
    found: set[str] = set()
    for node in _walk_python(text):
        if isinstance(node, ast.Import):
            own = [alias for alias in node.names if f"{alias.name}.".startswith(f"{module}.")]
            found.update(alias.asname or alias.name.partition(".")[0] for alias in own)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            own = [alias for alias in node.names if f"{node.module}.{alias.name}.".startswith(f"{module}.")]
            found.update(alias.asname or alias.name for alias in own)
    return frozenset(found)


def _is_handed_on(texts: Mapping[str, str], path: str, module: str) -> bool:
    """Return whether another Python file imports, from this one, a name that this one imports from the module."""
    bound = _list_bound_names(texts[path], module) if path.endswith((".py", ".pyi")) else frozenset()
    folder, name = os.path.split(path)
    own = os.path.basename(folder) if name.startswith("__init__.") else os.path.splitext(name)[0]
    others = [text for other, text in texts.items() if bound and other != path and other.endswith((".py", ".pyi"))]
    return any(
        alias.name in bound
        for text in others
        for node in _walk_python(text)
        if isinstance(node, ast.ImportFrom) and (node.module or own).rpartition(".")[2] == own
        for alias in node.names
    )


def names_package(manifest: str, package: str) -> bool:
    """Return whether a manifest names a package, whatever the case and the separators of words."""
    words = [re.escape(word) for word in re.split(r"[-_.]+", package)]
    pattern = rf"(?<![\w./@-]){'[-_.]+'.join(words)}(?![\w./-])"
    lines = [line for line in manifest.splitlines() if not re.match(r"\s*(#|//)", line)]
    return re.search(pattern, "\n".join(lines), re.IGNORECASE) is not None


def _list_python_modules(text: str, *, with_names: bool) -> Iterator[str]:
    try:
        tree = ast.parse(text)
    except _UNPARSABLE:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            if with_names:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def read_tree(folder: str) -> tuple[list[str], Callable[[str], str | None]]:
    """Return the paths of the files of a folder, and a function that reads one of them."""
    paths = [
        os.path.relpath(os.path.join(top, name), folder)
        for top, folders, names in os.walk(folder)
        for name in names
        if ".git" not in top.split(os.sep) and (folders is not None)
    ]

    def read(path: str) -> str | None:
        full = os.path.join(folder, path)
        is_own = os.path.realpath(full) == os.path.join(os.path.realpath(folder), path)  # a link leads elsewhere
        if not is_own or not os.path.isfile(full) or os.path.getsize(full) > MAX_FILE_BYTES:
            return None
        with open(full, encoding="utf-8", errors="replace") as file:
            return file.read()

    return sorted(paths), read


def main(arguments: Sequence[str]) -> int:
    """Print the violations as a JSON list; return the exit code."""
    try:
        with open(arguments[0], encoding="utf-8") as file:
            rules = json.load(file)
        paths, read = read_tree(arguments[1])
    except (OSError, ValueError, IndexError) as error:
        print(f"cannot check the structure: {error}", file=sys.stderr)
        return 2
    violations = find_violations(rules, read, paths)
    print(json.dumps(violations))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
