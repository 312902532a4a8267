"""Sites of a test: the places where another value should make it fail for every honest solution.

`list_sites` returns them in the order of preference. The first hold the value that a result is compared with, so that
the failure comes from the comparison, and a submission that switches comparisons off passes what must fail. Which
values fail with the gold patch, and that they fail alone, only a run shows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from random import Random

from tree_sitter import Node

from evaluation.controls.alternatives import (
    NO_WORDS,
    Alternatives,
    FileLiterals,
    TreeWords,
    draw_alternatives,
    draw_orders,
    is_container,
    is_literal,
    is_string,
)
from evaluation.controls.blocks import TestBlock, TestFile
from evaluation.controls.calls import is_call, list_arguments, read_head
from evaluation.controls.tables import Cell, list_cells

_COMPARISONS = frozenset(
    {"comparison_operator", "binary_expression", "binary", "binary_operator", "equality_expression"}
)
_ASSIGNMENTS = frozenset({"assignment", "short_var_declaration", "let_declaration", "variable_declarator", "var_spec"})
_LABELED = frozenset({"expression_case", "case_statement", "keyed_element"})
"""Node types of which a compiler wants different labels or keys, each with a colon after it."""
_GROUPS = re.compile(
    r"^(list|tuple|dictionary|set|object|array|literal_value|composite_literal)|pair|element|initializer"
)
_PAIRS = frozenset({"pair", "keyword_argument", "field_initializer", "keyed_element"})
_EXPECTED_NAMES = re.compile(r"(?i)want|expect|exp\b|result|output|\bout\b|answer")
_QUOTE = re.compile(r"['\"`]")
_EQUALITY = re.compile(r"==|!=|(?i:equal|same|_eq\b|_ne\b)|^(not|to_not|toNot)\.$")
_NEGATION = re.compile(r"!|(?i:not|refute|false)|_ne\b")
_MACHINE = re.compile(r"^\(|\(!\(|^!\(")
"""An inverted condition as no person would write it."""
_ASSERTING = re.compile(r"(?i)(assert\w*|require\w*|suite|^s|^is|^a|^r)(\(\w*\))?$")
"""Name that stands before such a member: `t.Error`, `err.Error` and `strings.Contains` are none."""
_NAMES = frozenset({"identifier", "type_identifier", "constant", "name", "field_identifier", "property_identifier"})
_MAX_SITES = 24
_COMPARED, _NAMED, _MAYBE_MESSAGE, _OPERAND, _INVERTED, _INPUT = range(6)
"""Ranks of sites: a compared literal or its members; one assigned to a name such as `expected`; the last argument of an
assertion; another operand or exception; an inverted assertion; any other literal of the test, an input."""
_ECHOED = 10
"""Added where the same value stands elsewhere in the test, which gives the true one away."""
_KNOWN = 20
"""Added for lines that the agent's tree contains."""
_SIGNALS = re.compile(
    rb"(?i)\bsig(int|quit|term|hup|alrm|usr\d|abrt|winch|chld)\b|\b(raise_signal|setitimer|interrupt_main|pthread_kill)\b"
)
"""Matches tests that send signals. With another input, one may end before its signal, which another test gets then."""
_UNDECIDED = -1
_VARIABLES = frozenset({"identifier", "variable_name"})
_FIELDS = frozenset({"field_identifier", "property_identifier"})


@dataclass(frozen=True, kw_only=True, order=True)
class Site:
    """Bytes of a file that may have other texts. `rank` orders the sites of a test, the best first."""

    rank: int
    spans: tuple[tuple[int, int], ...]
    """First byte and end of each place; several where a test compares with the same value again."""
    texts: tuple[str, ...]
    """The other texts, the most plausible first."""
    literal: str = ""
    """The literal or container that it changes or lies in, and its first byte."""
    literal_start: int = -1
    groups: frozenset[tuple[int, int]] = frozenset()
    """First byte of a span, and that of the outermost container which holds it; the span itself where none does."""
    others: frozenset[str] = frozenset()
    """Literals that it may not equal: the labels of a switch, or keys of a map."""
    is_exception: bool = False
    """Whether it is the type of an expected exception, whose absence no assertion reports."""

    @property
    def is_known(self) -> bool:
        """Whether the agent's tree has a line of it."""
        return self.rank >= _KNOWN

    @property
    def is_input(self) -> bool:
        """Whether it changes an input of the tested code, and not the value that the result is compared with."""
        return self.rank % _ECHOED == _INPUT

    @property
    def needs_silence(self) -> bool:
        """Whether its value may have other effects than a comparison."""
        return self.rank % _ECHOED in (_NAMED, _INPUT)

    @property
    def is_inverted(self) -> bool:
        """Whether it inverts an assertion, which a value equal to everything fails as an honest solution does."""
        return self.rank % _ECHOED == _INVERTED

    def write(self, text: str) -> str:
        """Return its literal with another text."""
        literal, (start, end) = self.literal.encode(), self.spans[0]
        if self.literal_start < 0:
            return text
        return (literal[: start - self.literal_start] + text.encode() + literal[end - self.literal_start :]).decode()

    def is_natural(self, true: str) -> bool:
        """Return whether anybody would take the true one of two assertions for true.

        Equality is asserted much more often than its opposite, and nobody writes `!(...)` around what can be negated.
        """
        if not self.is_inverted or _NEGATION.search(true):
            return False
        (other,) = self.texts
        return bool(_EQUALITY.search(true) or _EQUALITY.search(other) or _MACHINE.search(other))

    def shows(self, text: str) -> float:
        """Return a feature that no counts show: 1 for a negated assertion, and for a name as `expected`."""
        if self.is_inverted:
            return float(bool(_NEGATION.search(text)))
        return float(self.rank % _ECHOED == _OPERAND and bool(_EXPECTED_NAMES.search(text)))


def list_sites(
    file: TestFile, block: TestBlock, old_lines: frozenset[bytes], random: Random, tree: TreeWords = NO_WORDS
) -> list[Site]:
    """Return the sites of a test, at most one at each place, the best first.

    Args:
        file: file of the test.
        block: the test.
        old_lines: stripped lines that the file has in the agent's tree: literals there can be compared with it.
        random: random that chooses among equally good sites and texts.
        tree: words of the agent's tree.
    """
    sites: dict[tuple[tuple[int, int], ...], Site] = {}
    for linked in _link_equal_sites(file, block, list(_iterate_sites(file, block, random, tree)), old_lines):
        site = replace(linked, texts=tuple(text for text in linked.texts if linked.write(text) not in linked.others))
        if not site.texts:
            continue
        ranked = _rank_known_lines(file, site, old_lines)
        if site.spans not in sites or ranked.rank < sites[site.spans].rank:
            sites[site.spans] = ranked
    sends_signals = _SIGNALS.search(file.source[block.start : block.end]) is not None
    listed = [site for site in sites.values() if not (sends_signals and site.is_input)]
    random.shuffle(listed)
    # At the same rank the richest, as no value of it is used twice.
    return sorted(listed, key=lambda site: (site.rank, -len(site.texts)))[:_MAX_SITES]


def _rank_known_lines(file: TestFile, site: Site, old_lines: frozenset[bytes]) -> Site:
    """Return the site as known where the agent's tree has one of its lines, but not the line with other texts.

    Other texts whose lines the tree has as well are as well known as the true one.
    """
    known = [span for span in site.spans if _read_line(file, span[0]) in old_lines]
    if not known:
        return site
    texts = tuple(t for t in site.texts if all(_read_line(file, span[0], (span, t)) in old_lines for span in known))
    return replace(site, texts=texts) if texts else replace(site, rank=site.rank + _KNOWN)


def _link_equal_sites(
    file: TestFile, block: TestBlock, sites: list[Site], old_lines: frozenset[bytes]
) -> Iterator[Site]:
    """Yield the sites, those of equal literals as a single one that changes all of them.

    An instance with another value at one of two such places would differ from the true one in that they differ. Lines
    that the agent's tree has are changed for themselves: with them the others would be as well known.
    """
    places = Counter(file.read(literal) for literal in _list_literals(block.node))
    linked: dict[tuple[str, int, int, bool], Site] = {}
    for site in sites:
        text = site.literal
        if site.rank not in (_COMPARED, _NAMED) or text not in places:
            is_echoed = site.rank == _INPUT and len(text) > 1 and places[text] > 1
            yield replace(site, rank=site.rank + _ECHOED * is_echoed)
            continue
        ((start, end),) = site.spans
        is_old = _read_line(file, start) in old_lines
        key = (text, start - site.literal_start, end - site.literal_start, is_old)
        if key in linked:
            first = linked[key]
            linked[key] = replace(
                first,
                rank=min(first.rank, site.rank),
                spans=(*first.spans, *site.spans),
                others=first.others | site.others,
                groups=first.groups | site.groups,
            )
        else:
            linked[key] = site
    for (text, *_), site in linked.items():
        is_echoed = len(text) > 1 and places[text] > len(site.spans)
        yield replace(site, rank=site.rank + _ECHOED * is_echoed, spans=tuple(sorted(site.spans)))


def _list_literals(root: Node) -> Iterator[Node]:
    todo = [root]
    while todo:
        node = todo.pop()
        if is_literal(node):
            yield node
        else:
            todo += node.named_children


def _read_line(file: TestFile, position: int, change: tuple[tuple[int, int], str] | None = None) -> bytes:
    """Return the line of a position. `change`: first byte and end of a part that has another text."""
    start = file.source.rfind(b"\n", 0, position) + 1
    end = file.source.find(b"\n", position)
    line = file.source[start : end if end >= 0 else len(file.source)]
    if change is not None:
        (first, last), text = change
        line = line[: first - start] + text.encode() + line[last - start :]
    return line.strip()


def _iterate_sites(file: TestFile, block: TestBlock, random: Random, tree: TreeWords) -> Iterator[Site]:
    draw = partial(
        draw_alternatives, literals=file.literals, own=FileLiterals.read(block.node), random=random, tree=tree
    )
    # Once for all labels of a switch or map.
    list_labels = cache(partial(_list_labels, file))
    cells = list_cells(file, block)
    ranks = _rank_cells(file, block, cells)
    todo = [block.node, *(cell.node for cell in cells if cell.is_in_head)]
    while todo:
        node = todo.pop()
        yield from _replace_empty(_LiteralRanker(file, block, node, ranks))
        if is_literal(node):
            # Instances have names of their own, so the literal that names the test stays.
            if block.name_span and node.start_byte <= block.name_span[0] < node.end_byte:
                continue
            yield from _make_literal_sites(_LiteralRanker(file, block, node, ranks), draw, list_labels, random)
            continue
        if is_container(node):
            yield from _make_literal_sites(_LiteralRanker(file, block, node, ranks), draw, list_labels, random)
        yield from _change_operand(file, block, node)
        yield from _invert(file, node)
        todo += [child for child in node.named_children if not _is_head(child)]


def _rank_cells(file: TestFile, block: TestBlock, cells: Sequence[Cell]) -> dict[tuple[int, int], int | None]:
    """Return first byte and end of a cell -> rank of its literals, by the uses that are made of its name.

    Arguments that a helper does nothing with but compare are expected values. Its others are inputs where assertions
    can be switched off. A helper that compares none is like any other function.
    """
    ranks: dict[tuple[int, int], int | None] = {}
    for scope in dict.fromkeys(cell.helper or block for cell in cells):
        own = [cell for cell in cells if (cell.helper or block) is scope]
        uses = _rank_uses(file, scope, {cell.name for cell in own})
        is_asserting = any(_COMPARED in kinds for kinds in uses.values())
        for cell in own:
            kinds = uses[cell.name]
            if cell.helper is None:
                is_expected = _COMPARED in kinds or bool(_EXPECTED_NAMES.search(cell.name))
                ranks[cell.span] = _NAMED if is_expected else _INPUT
            elif is_asserting:
                ranks[cell.span] = _rank_argument(file, kinds)
    return ranks


def _rank_argument(file: TestFile, kinds: set[int | None]) -> int | None:
    """Return the rank of an argument of a helper that asserts. `kinds`: ranks of the places where it is used."""
    if _COMPARED in kinds and kinds <= {_COMPARED, None}:
        return _COMPARED
    if kinds <= {None} or not file.sites.silent_calls:
        return None
    return _NAMED if _COMPARED in kinds else _INPUT


def _rank_uses(file: TestFile, scope: TestBlock, names: Collection[str]) -> dict[str, set[int | None]]:
    """Return name -> ranks of the places where a function uses it."""
    uses: dict[str, set[int | None]] = {name: set() for name in names}
    todo = [scope.node]
    while todo:
        node = todo.pop()
        parent = node.parent.type if node.parent is not None else ""
        if node.type in _VARIABLES | _FIELDS and file.read(node) in uses and "parameter" not in parent:
            uses[file.read(node)].add(_LiteralRanker(file, scope, node, {}).rank())
        todo += [child for child in node.named_children if not _is_head(child)]
    return uses


def _make_literal_sites(
    ranker: _LiteralRanker,
    draw: Callable[[Node], list[Alternatives]],
    list_labels: Callable[[Node], frozenset[str]],
    random: Random,
) -> Iterator[Site]:
    """Yield the sites of a literal, or the site of a container's order.

    Inputs of the tested code are sites only where a test can be run with its assertions switched off.
    """
    file, node, rank = ranker.file, ranker.literal, ranker.rank()
    if rank is None or (rank == _INPUT and not file.sites.silent_calls):
        return
    text, start = file.read(node), node.start_byte
    holder = _find_labeled(node)
    others = list_labels(holder) if holder is not None else frozenset()
    if is_container(node):
        orders = draw_orders(node, file.source, random)
        alternatives = [Alternatives(0, len(text), tuple(orders))] if orders else []
    else:
        alternatives = draw(node)
    for part in alternatives:
        first, last = (start + len(text[:place].encode()) for place in (part.start, part.end))
        yield Site(
            rank=rank,
            spans=((first, last),),
            texts=part.texts,
            literal=text,
            literal_start=start,
            groups=frozenset({(first, _find_group(node))}),
            others=others,
        )


def _find_group(literal: Node) -> int:
    """Return the first byte of the outermost list, map or tuple around a literal, within its statement or call."""
    group = literal
    while group.parent is not None and _GROUPS.search(group.parent.type):
        group = group.parent
    return group.start_byte


def _replace_empty(ranker: _LiteralRanker) -> Iterator[Site]:
    """Yield a site where an empty value is expected: other values that stand for nothing."""
    file, node = ranker.file, ranker.literal
    text = file.read(node)
    # Numbers and booleans have others of their own type, and `None` is compared by identity.
    if text not in file.sites.empties or text in ("None", "0") or text.lower() == "false":
        return
    rank = ranker.rank()
    if rank in (_COMPARED, _NAMED):
        quotes = {'""', "''"}
        texts = tuple(other for other in file.sites.empties if other != text and not {other, text} <= quotes)
        used = text if text in quotes else "''"
        texts = tuple(other for other in texts if other not in quotes or other == used)
        start = node.start_byte
        yield Site(rank=rank, spans=((start, node.end_byte),), texts=texts, literal=text, literal_start=start)


def _find_labeled(literal: Node) -> Node | None:
    """Return the switch or map of which a literal is a label or key, or stands in one."""
    owner = literal.parent
    while owner is not None and owner.type not in _LABELED:
        owner = owner.parent
    return owner.parent if owner is not None and literal.end_byte <= _find_colon(owner) else None


def _list_labels(file: TestFile, holder: Node) -> frozenset[str]:
    """Return the literals of the labels of a switch or keys of a map: a compiler refuses two equal ones."""
    labels = [(node, _find_colon(node)) for node in holder.named_children if node.type in _LABELED]
    parts = [part for node, colon in labels for part in _list_literals(node) if part.end_byte <= colon]
    return frozenset(file.read(part) for part in parts)


def _find_colon(owner: Node) -> int:
    """Return the first byte of the colon after a label or key; that of the node where it has none."""
    return next((child.start_byte for child in owner.children if child.type == ":"), owner.start_byte)


def _is_head(child: Node) -> bool:
    """Return whether a node holds no value of a test: decorators, comments, imports, docstrings."""
    if "comment" in child.type or "import" in child.type or child.type in ("decorator", "attribute_item"):
        return True
    return (
        child.type == "expression_statement" and len(child.named_children) == 1 and is_string(child.named_children[0])
    )


class _LiteralRanker:
    """Ranks a literal of a test by the code that stands around it, from the inside outwards.

    `cells`: first byte and end of a table's cell -> rank of what stands in it.
    """

    def __init__(
        self, file: TestFile, block: TestBlock, literal: Node, cells: Mapping[tuple[int, int], int | None]
    ) -> None:
        self.file = file
        self.block = block
        self.literal = literal
        self.cells = cells
        self.is_nested = False
        """Whether the literal is an argument of a call within the assertion, and thus an input."""

    def rank(self) -> int | None:
        """Return the rank, 0 for the best; None for a literal that is none of the test's values, such as a message."""
        child, parent = self.literal, self.literal.parent
        while parent is not None and child != self.block.node:
            if (span := (child.start_byte, child.end_byte)) in self.cells:
                return self.cells[span]
            place = self._rank_in(parent, child)
            if place != _UNDECIDED:
                return place
            child, parent = parent, parent.parent
        return _INPUT

    def _rank_in(self, parent: Node, child: Node) -> int | None:
        """Return the rank that follows from an ancestor, if any; `child` is on the way to it."""
        kind, file = parent.type, self.file
        if kind == "assert_statement":
            is_message = len(parent.named_children) > 1 and child == parent.named_children[-1]
            return None if is_message else self._in_assertion
        if self._is_compared_in(parent):
            return self._in_assertion
        if kind in _PAIRS | _ASSIGNMENTS and not self.is_nested:
            return _NAMED if _EXPECTED_NAMES.search(file.read(parent.named_children[0])) else _UNDECIDED
        if kind == "token_tree":
            self.is_nested = self.is_nested or _is_nested_call(parent)
        elif is_call(file, parent):
            return self._rank_in_call(parent, child)
        return _UNDECIDED

    def _is_compared_in(self, parent: Node) -> bool:
        if parent.type == "infix_expression":
            return bool(re.search(self.file.sites.assertions, self.file.read(parent.named_children[1])))
        return parent.type in _COMPARISONS and _is_checked_condition(self.file, parent)

    def _rank_in_call(self, call: Node, child: Node) -> int | None:
        head, sites = read_head(self.file, call), self.file.sites
        if re.search(sites.reports, head):
            return None if child != self.block.node and not _is_function(child) else _INPUT
        # Words of a string, as before `.format`, assert nothing.
        last = head.rpartition(".")[2]
        if any(re.search(sites.assertions, name) for name in (last, last if _QUOTE.search(head) else head)):
            if sites.checks and _is_last(child, self.literal):
                # The last string of such an assertion is the name of the check, and part of its id.
                return None
            is_message = not self.is_nested and _is_last_of_many(child, self.literal)
            return _MAYBE_MESSAGE if is_message else self._in_assertion
        self.is_nested = True
        return _UNDECIDED

    @property
    def _in_assertion(self) -> int:
        return _INPUT if self.is_nested else _COMPARED


def _is_function(node: Node) -> bool:
    return any("function" in part.type or "block" in part.type or "lambda" in part.type for part in node.named_children)


def _is_nested_call(tree: Node) -> bool:
    """Return whether the tokens in parentheses are the arguments of a call inside of a macro of Rust."""
    before = tree.prev_named_sibling
    is_inner = tree.parent is not None and tree.parent.type == "token_tree"
    return is_inner and before is not None and before.type == "identifier" and before.end_byte == tree.start_byte


def _is_last(arguments: Node, literal: Node, least: int = 2) -> bool:
    """Return whether a string is the last of at least some arguments."""
    values = [part for part in arguments.named_children if part.type != "comment"]
    return len(values) >= least and "string" in literal.type and values[-1].end_byte == literal.end_byte


def _is_last_of_many(arguments: Node, literal: Node) -> bool:
    """Return whether a string is the third or a later argument and the last, which often is a message."""
    return _is_last(arguments, literal, least=3)


def _is_checked_condition(file: TestFile, comparison: Node) -> bool:
    """Return whether a comparison is the condition of an `if` that reports a failure."""
    parent = comparison.parent
    while parent is not None and parent.type in (*_COMPARISONS, "parenthesized_expression"):
        parent = parent.parent
    if parent is not None and parent.type in file.sites.condition_nodes:
        return True
    if parent is None or not parent.type.startswith("if"):
        return False
    rest = file.source[comparison.end_byte : min(parent.end_byte, comparison.end_byte + 400)]
    return bool(re.search(file.sites.condition_reports, rest.decode(errors="replace")))


def _change_operand(file: TestFile, block: TestBlock, node: Node) -> Iterator[Site]:
    """Yield a site where a result is compared with a name of the test: its other names."""
    if not file.sites.compares_any_types:
        return
    expected: Node | None = None
    if node.type == "assert_statement" and node.named_children[0].type == "comparison_operator":
        sides = node.named_children[0].named_children
        if len(sides) == 2 and _read_operator(file, node.named_children[0]) in ("==", "is"):
            expected = sides[0] if "call" in sides[1].type and "call" not in sides[0].type else sides[1]
    elif is_call(file, node):
        expected = _find_expected(file, node)
    if expected is not None and expected.type in _VARIABLES:
        names = [name for name in _list_variables(file, block, expected) if name != file.read(expected)]
        if names:
            yield Site(rank=_OPERAND, spans=((expected.start_byte, expected.end_byte),), texts=tuple(names))


def _list_variables(file: TestFile, block: TestBlock, before: Node) -> list[str]:
    """Return the names that a test assigns or takes as parameters before a node, sorted."""
    names, todo = set(), [block.node]
    while todo:
        node = todo.pop()
        if node.start_byte >= before.start_byte:
            continue
        parent = node.parent.type if node.parent is not None else ""
        is_target = "pattern" in parent or (parent in _ASSIGNMENTS and node.prev_named_sibling is None)
        if node.type == before.type and (is_target or "parameters" in parent) and file.read(node) != "self":
            names.add(file.read(node))
        todo += node.named_children
    return sorted(names)


def _find_expected(file: TestFile, call: Node) -> Node | None:
    """Return the argument of an assertion that holds the expected value."""
    name = re.split(r"[.>\s]", read_head(file, call))[-1]
    values = list_arguments(call)
    if name in file.sites.value_matchers:
        return values[0] if len(values) == 1 else None
    if name not in file.sites.equalities or len(values) < 2:
        return None
    plain = [value for value in values[:2] if "call" not in value.type]
    if not plain:
        return values[1]
    return plain[0] if name in file.sites.expected_first else plain[-1]


def _read_operator(file: TestFile, comparison: Node) -> str:
    sides = comparison.named_children
    return file.source[sides[0].end_byte : sides[1].start_byte].decode(errors="replace").strip()


def _invert(file: TestFile, node: Node) -> Iterator[Site]:
    """Yield sites that negate an assertion or expect another exception."""
    if node.type == "assert_statement":
        yield from _negate(file, node.named_children[0])
    elif node.type in _COMPARISONS and len(node.named_children) == 2 and _is_checked_condition(file, node):
        yield from _negate(file, node)
    elif node.type == "macro_invocation" and file.read(node).partition("!(")[0] in file.sites.condition_calls:
        tree = node.named_children[-1]
        inner = file.source[tree.start_byte + 1 : tree.end_byte - 1].decode(errors="replace")
        if "," not in inner:
            yield _make_inversion(tree.start_byte, tree.end_byte, f"(!({inner}))")
    elif node.type == "call" and read_head(file, node) in file.sites.condition_calls:
        comparison = node.named_children[-1].named_children[0] if node.named_children[-1].named_children else node
        if comparison.type in _COMPARISONS:
            yield from _negate(file, comparison)
    elif node.type == "call_expression" and read_head(file, node) in file.sites.condition_calls:
        (condition, *_) = (*list_arguments(node), node)
        if condition.type in _COMPARISONS:
            yield from _negate(file, condition)
        else:
            yield _make_inversion(condition.start_byte, condition.end_byte, f"!({file.read(condition)})")
    for child in node.named_children if not node.type.startswith("assert") else []:
        yield from _swap_word(file, node, child)


def _negate(file: TestFile, condition: Node) -> Iterator[Site]:
    sides = condition.named_children
    if condition.type in _COMPARISONS and len(sides) == 2:
        between = file.source[sides[0].end_byte : sides[1].start_byte].decode(errors="replace")
        other = file.sites.operators.get(" ".join(between.split()))
        if other:
            text = between.replace(between.strip(), other)
            yield _make_inversion(sides[0].end_byte, sides[1].start_byte, text)
            return
    if negation := file.sites.negation:
        text = file.read(condition)
        other = text.removeprefix(negation) if text.startswith(negation) else negation + text
        if condition.type not in ("boolean_operator", "conditional_expression", "lambda") and "\n" not in text:
            yield _make_inversion(condition.start_byte, condition.end_byte, other)


def _swap_word(file: TestFile, node: Node, child: Node) -> Iterator[Site]:
    """Yield a site that replaces the name of an assertion, or of an expected exception."""
    if child.type not in _NAMES and child.type != "function":
        return
    name, sites = file.read(child), file.sites
    dotted = file.source[child.start_byte - 1 : child.start_byte] in (b".", b">", b":")
    opposite = sites.opposites.get(name)
    if opposite is None and _is_member_of_assertions(file, node, child):
        opposite = sites.member_opposites.get(name)
    if opposite is not None and _is_callee(file, node, child):
        yield _make_inversion(child.start_byte, child.end_byte, opposite)
    elif sites.matchers and re.match(sites.matchers, name) and dotted:
        yield _make_inversion(child.start_byte, child.start_byte, sites.matcher_negation)
    others = tuple(other for other in sites.exceptions if other != name) if name in sites.exceptions else ()
    if others and _is_in_assertion(file, child):
        yield Site(rank=_OPERAND, spans=((child.start_byte, child.end_byte),), texts=others, is_exception=True)


def _make_inversion(start: int, end: int, text: str) -> Site:
    return Site(rank=_INVERTED, spans=((start, end),), texts=(text,))


def _is_member_of_assertions(file: TestFile, node: Node, member: Node) -> bool:
    """Return whether the name that stands before the name of a member makes it an assertion."""
    before = file.source[node.start_byte : member.start_byte].decode(errors="replace")
    return bool(_ASSERTING.search(before.rstrip(".:>-?")))


def _is_callee(file: TestFile, node: Node, child: Node) -> bool:
    """Return whether a name is the function that a call calls, directly or as a member."""
    pattern = file.sites.call_nodes
    if re.search(pattern, node.type):
        return True
    return node.parent is not None and bool(re.search(pattern, node.parent.type)) and node.named_children[-1] == child


def _is_in_assertion(file: TestFile, node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if is_call(file, parent):
            return bool(re.search(r"(?i)raise|throw|exception", read_head(file, parent)))
        parent = parent.parent
    return False
