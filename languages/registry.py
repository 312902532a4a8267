"""All supported languages, and the language of a file or a change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import PurePosixPath

from tree_sitter import Node

from core.errors import InputError
from languages.base import Framework, Language
from languages.c import C
from languages.cpp import CPP
from languages.elixir import ELIXIR
from languages.go import GO
from languages.habits import COMMON_TEST_COMMANDS, INFORMATION_OPTIONS
from languages.haskell import HASKELL
from languages.java import JAVA
from languages.javascript import JAVASCRIPT
from languages.julia import JULIA
from languages.kotlin import KOTLIN
from languages.loading import LoadHook
from languages.lua import LUA
from languages.parsing import Syntax, create_parser
from languages.perl import PERL
from languages.php import PHP
from languages.python import PYTHON
from languages.r import R
from languages.ruby import RUBY
from languages.rust import RUST
from languages.scala import SCALA
from languages.signatures import SignatureSyntax
from languages.swift import SWIFT
from languages.typescript import TYPESCRIPT
from languages.unsupported import UNCLASSIFIED_SIGNATURES, UNSUPPORTED, UnsupportedLanguage

LANGUAGES: dict[str, Language] = {
    "python": PYTHON,
    "c": C,
    "c++": CPP,
    "elixir": ELIXIR,
    "go": GO,
    "haskell": HASKELL,
    "java": JAVA,
    "javascript": JAVASCRIPT,
    "julia": JULIA,
    "kotlin": KOTLIN,
    "lua": LUA,
    "perl": PERL,
    "php": PHP,
    "r": R,
    "ruby": RUBY,
    "rust": RUST,
    "scala": SCALA,
    "swift": SWIFT,
    "typescript": TYPESCRIPT,
}
"""Name -> language."""


DEFAULT_LANGUAGE = "python"
"""Language of a change, and of a text, whose files are of no known language."""


def get_language(name: str) -> Language:
    """Return the language of that name.

    Raises:
        InputError: the language is not supported.
    """
    if name not in LANGUAGES:
        raise InputError(f"{name} is not supported", advice=f"known: {', '.join(LANGUAGES)}")
    return LANGUAGES[name]


@cache
def list_own_version_variables() -> tuple[str, ...]:
    """Return the names of variables, of all languages, that hold the version of a project."""
    return tuple(name for language in LANGUAGES.values() for name in language.own_version_variables)


@cache
def frameworks_by_name() -> dict[str, Framework]:
    """Return name -> framework, for all languages."""
    return {framework.name: framework for language in LANGUAGES.values() for framework in language.frameworks}


def find_framework(name: str) -> Framework | None:
    """Return the test framework of that name; None if it is not known, as one of a language that was removed."""
    return frameworks_by_name().get(name)


@cache
def list_classified_languages() -> tuple[Language | UnsupportedLanguage, ...]:
    """Return all languages whose files are classified, in the order of their patterns in evaluation scripts.

    The ids of tasks depend on these scripts byte by byte, and a language that is no longer supported keeps its place.
    """
    known: dict[str, Language | UnsupportedLanguage] = {**LANGUAGES, **UNSUPPORTED}
    return tuple(
        known[name] for name in sorted(known, key=lambda name: (name != DEFAULT_LANGUAGE, name.replace("#", "~")))
    )


@cache
def languages_by_suffix() -> dict[str, str]:
    """Return suffix of a program file -> name of its language."""
    known: dict[str, Language | UnsupportedLanguage] = {**UNSUPPORTED, **LANGUAGES}
    return {suffix: name for name, language in known.items() for suffix in language.suffixes}


@cache
def load_hooks_by_suffix() -> dict[str, LoadHook]:
    """Return suffix of a file -> code that runs a command when the file is loaded."""
    hooks = [language.load_hook for language in list_classified_languages() if language.load_hook is not None]
    return {suffix: hook for hook in hooks for suffix in hook.suffixes}


def detect_file_language(path: str) -> str:
    """Return the language of a file by its suffix; empty if unknown."""
    return languages_by_suffix().get(PurePosixPath(path).suffix.lower(), "")


def detect_language(paths: Iterable[str]) -> str:
    """Return the language of most program files among `paths`; Python wins ties; empty if there are none.

    Headers next to C++ files count as C++.
    """
    counts = Counter(name for path in paths if (name := detect_file_language(path)))
    if "c++" in counts:
        counts["c++"] += counts.pop("c", 0)
    return min(counts, key=lambda name: (-counts[name], name != DEFAULT_LANGUAGE, name), default="")


def find_language(path: str) -> Language | None:
    """Return the language of a file by its suffix; None if it is not supported."""
    return LANGUAGES.get(detect_file_language(path))


def find_signatures(path: str) -> SignatureSyntax:
    """Return how definitions look in a file, by its suffix; as in most languages if it is not known."""
    name = detect_file_language(path)
    language = LANGUAGES.get(name) or UNSUPPORTED.get(name)
    if language is not None:
        return language.signatures
    return UNCLASSIFIED_SIGNATURES.get(PurePosixPath(path).suffix, SignatureSyntax())


def find_test_commands() -> str:
    """Return the regex of commands that run tests, in whatever language; not of those that only list them or so."""
    patterns = [language.habits.test_commands for language in LANGUAGES.values()]
    joined = "|".join(dict.fromkeys([*filter(None, patterns), COMMON_TEST_COMMANDS]))
    return rf"(?:{joined})(?!.*\s(?:{INFORMATION_OPTIONS})(?![\w-]))"


def get_test_seconds(language: str, default: float) -> float:
    """Return the timeout of a run of a language's tests. `default`: that of languages without a runner of their own."""
    known = LANGUAGES.get(language)
    return default if known is None or known.test_seconds is None else known.test_seconds


@cache
def syntaxes_by_suffix() -> dict[str, tuple[Language, Syntax]]:
    """Return suffix of a file -> its language and grammar, for languages that have a grammar."""
    return {
        suffix: (language, syntax)
        for language in LANGUAGES.values()
        for syntax in language.syntaxes
        for suffix in syntax.suffixes
    }


def find_parsed_language(path: str) -> tuple[Language, Syntax] | tuple[None, None]:
    """Return the language and grammar of a file by its suffix; (None, None) if there is no grammar."""
    return syntaxes_by_suffix().get(PurePosixPath(path).suffix.lower(), (None, None))


def parse_source(path: str, source: bytes) -> tuple[Language, Node] | None:
    """Return the language and tree of a file.

    None for languages without a grammar and for content that is not UTF-8.
    """
    language, syntax = find_parsed_language(path)
    try:
        source.decode()
    except UnicodeDecodeError:
        return None
    if language is None or syntax is None:
        return None
    return language, create_parser(syntax).parse(source).root_node


def find_syntax(path: str) -> Syntax | None:
    """Return the grammar of a file by its suffix."""
    _, syntax = find_parsed_language(path)
    return syntax


def declares_versions(path: str) -> bool:
    """Return whether a file is one in which projects of any language declare the versions that they support."""
    return any(re.search(pattern, path) for language in LANGUAGES.values() for pattern in language.version_files)


@cache
def language_family(name: str) -> frozenset[str]:
    """Return the language and those that share a test framework with it: their files belong to the same projects."""
    if name not in LANGUAGES:
        return frozenset({name})
    own = {framework.name for framework in LANGUAGES[name].frameworks}
    related = {other.name for other in LANGUAGES.values() if own & {framework.name for framework in other.frameworks}}
    return frozenset({name, *related})
