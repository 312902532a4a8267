"""Heads of definitions: how a function or type begins, where its body begins, and how its parameters are written."""

from __future__ import annotations

from dataclasses import dataclass

_KEYWORD = r"(?:def|func|fn|fun|function|sub|class|struct|interface|trait|enum|record)\*?"
_VISIBILITY = r"(?:public|protected|internal|static|final|abstract|override|async|export|default|pub(?:\([\w:]+\))?)"
COMMON_HEADS = (
    rf"^[ \t]*(?P<head>(?:{_VISIBILITY}\s+)*{_KEYWORD}\s+(?:\([^)\n]*\)\s*)?(?P<name>[^\W\d]\w*[?!]?))",
    rf"^[ \t]*(?P<head>(?:{_VISIBILITY}\s+)+[\w<>\[\],.? ]+?\s(?P<name>[^\W\d]\w*))(?=\s*\()",
    r"^[ \t]*(?P<head>(?:export\s+)?(?:const|let|var)\s+(?P<name>[^\W\d]\w*)\s*=\s*(?:async\s*)?)(?=\([^\n]*=>)",
)
COMMON_BODY = r"=>| = | do$"
COMMON_FUNCTION = r"^(\s*)(?:async\s+|pub\s+|public\s+|static\s+|void\s+|final\s+)*(?:def|func|fn|fun|void|sub)\s+(\w+)"


@dataclass(frozen=True, kw_only=True)
class SignatureSyntax:
    """Regexes and shapes of definitions; the defaults are those that many languages share."""

    heads: tuple[str, ...] = COMMON_HEADS
    """Regexes, in multi-line mode, of a definition up to its name or parameters, with the groups `head` and `name`."""
    bodies: tuple[str, ...] = (COMMON_BODY,)
    """Regexes of the text after a signature on its line, applied in this order."""
    function: str = COMMON_FUNCTION
    """Regex of a line that begins a function, with the groups indentation and name."""
    are_types_first: bool = False
    """Whether the type of a parameter stands before its name."""
    have_classes_parameters: bool = True
    """Whether what stands in brackets after the name of a class are parameters, not bases."""
