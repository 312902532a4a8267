"""Multiple choice: a test stands several times in its file, and exactly one instance is true.

Both `mergemill grade` and the graders in bundles use this module: Python 3.6 or later, with the standard library only.

All instances have drawn names and stand in drawn order. They differ at one or more sites: literals, members or expected
exceptions. At a site every value stands in equally many instances, so that no value is more frequent than another, and
the instances are all combinations of the values of their sites, so that each differs from the others in as many ways
as any other does.
"""

from itertools import product
from random import Random
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

from guest.controls.texts import Edit, copy_block, draw_name, join_instances, rename_test

CHOICES = 24
"""Random choices of values of which one is taken."""
PASSES = "passes"
"""Expected outcome of a true instance. That of another is how it failed with the gold patch."""


class Instances(NamedTuple):
    """The drawn instances of a block."""

    edit: Edit
    """Puts them in the place of the block."""
    expected: Dict[str, str]
    """Test id -> expected outcome."""
    origins: Dict[str, str]
    """Id of a test in an instance -> id of the test in the block."""
    names: List[str]
    """Their names, in the order of the file."""
    inputs: List[str]
    """Ids in instances whose only difference is an input of the tested code."""


class Variant(NamedTuple):
    """The text of an instance before it is named: its edits, and test -> how it fails. Empty for the true instance.

    `is_input`: whether only inputs of the tested code differ, which a wrong solution may pass without any forgery.
    `ids`: id of a test -> its id with the edits, where values are part of it.
    """

    edits: List[Edit]
    fails: Dict[str, str]
    is_input: bool = False
    ids: Mapping[str, str] = {}


def draw_instances(text: bytes, block: Mapping[str, Any], random: Random) -> Instances:
    """Draw the instances of a block that has `menus` (see `guest.controls.blind`).

    Args:
        text: the block's file.
        block: a block of a document.
        random: a `random.SystemRandom`, whose draws nobody can predict.
    """
    variants = list(draw_variants(block, random))
    random.shuffle(variants)
    return name_instances(text, block, variants, random)


def draw_variants(block: Mapping[str, Any], random: Random) -> List[Variant]:
    """Draw the texts of the instances, the true one first: the combinations of some values of some sites."""
    options: List[List[Variant]] = []
    for number, size in random.choice(block["menus"]):
        site = block["sites"][number]
        chosen = choose_values(site, size - 1, random)
        options.append([Variant([], {})] + [make_variant(site, value) for value in chosen])
    return [_combine(values) for values in product(*options)]


def choose_values(site: Mapping[str, Any], number: int, random: Random) -> List[Mapping[str, Any]]:
    """Choose other values of a site so that the true one is as likely first as last in every feature.

    Of some random choices the one is taken that comes nearest to drawn ranks of the true value.
    """
    values, true = site["values"], site.get("features")
    if not true or number >= len(values):
        return random.sample(values, number)
    above = [
        [1.0 if own > other else 0.5 if own == other else 0.0 for own, other in zip(value["features"], true)]
        for value in values
    ]
    ranks = [random.randint(0, number) / float(number) for _ in true]
    best: List[int] = []
    least = float("inf")
    for _ in range(CHOICES):
        chosen = _choose_by_rank(above, number, random)
        shares = [sum(column) / number for column in zip(*[above[place] for place in chosen])]
        distance = sum(abs(share - rank) for share, rank in zip(shares, ranks))
        if distance < least:
            best, least = chosen, distance
    return [values[place] for place in best]


def _choose_by_rank(above: List[List[float]], number: int, random: Random) -> List[int]:
    """Choose values of which a drawn number is above the true one in a drawn feature, as far as there are so many.

    Args:
        above: row of numbers for each value: 1 for a feature above that of the true one, 0.5 for an equal one, else 0.
        number: number of values to choose.
        random: random of the choice.
    """
    feature = random.randrange(len(above[0]))
    shuffled = random.sample(range(len(above)), len(above))
    higher = [place for place in shuffled if above[place][feature] == 1.0]
    others = [place for place in shuffled if above[place][feature] != 1.0]
    n_higher = random.randint(0, number)
    return (higher[:n_higher] + others[: number - n_higher] + higher[n_higher:] + others[number - n_higher :])[:number]


def make_variant(site: Mapping[str, Any], value: Mapping[str, Any]) -> Variant:
    """Return the instance in which a site has one of its other values."""
    edits = [[start, end, value["text"]] for start, end in site["spans"]]
    return Variant(edits, dict(value["fails"]), bool(site.get("is_input")), value.get("ids", {}))


def _combine(values: Iterable[Variant]) -> Variant:
    edits: List[Edit] = []
    fails: Dict[str, str] = {}
    ids: Dict[str, str] = {}
    changed = [value for value in values if value.edits]
    for value in changed:
        edits += value.edits
        fails.update(value.fails)
        ids.update(value.ids)
    return Variant(edits, fails, bool(changed) and all(value.is_input for value in changed), ids)


def name_instances(text: bytes, block: Mapping[str, Any], variants: List[Variant], random: Random) -> Instances:
    """Give instances their names, in the order of `variants`."""
    old = text[slice(*block["name"])].decode("utf-8")
    expected: Dict[str, str] = {}
    origins: Dict[str, str] = {}
    inputs: List[str] = []
    texts: Dict[str, str] = {}
    for variant in variants:
        name = draw_name(old, random)
        while name in texts:
            name = draw_name(old, random)
        texts[name] = copy_block(text, block["span"], block["name"], name, variant.edits)
        for test in block["tests"]:
            renamed = rename_test(variant.ids.get(test, test), old, name)
            expected[renamed] = variant.fails.get(test, PASSES)
            origins[renamed] = test
            inputs += [renamed] if variant.is_input else []
    start, end = block["span"]
    return Instances([start, end, join_instances(text, start, texts.values())], expected, origins, list(texts), inputs)


def count_instances(block: Mapping[str, Any]) -> int:
    """Return the smallest number of instances that can be drawn of a block."""
    return min(_multiply(size for _, size in menu) for menu in block["menus"])


def _multiply(sizes: Iterable[int]) -> int:
    number = 1
    for size in sizes:
        number *= size
    return number
