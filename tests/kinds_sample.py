"""A small repository whose changes give a task of every kind, and the commands that make them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taskdb.records import Kind
from tests.backends.llm.server import ScriptedAnswer, run_model_server
from tests.cli import CommandResult, run_mergemill
from tests.helpers import TinyRepo
from tests.sample import LICENSE, PYPROJECT

PRICES = '''"""Prices."""


def total(prices):
    """Sum of the prices."""
    return sum(prices[1:])


def label(price):
    """A price tag."""
    return "EUR %s" % price
'''
PRICES_COUNTED = PRICES.replace("prices[1:]", "prices")
PRICES_LABELLED = PRICES_COUNTED.replace('"EUR %s" % price', '"EUR %.2f" % price')
TEST_PRICES = """from shop.prices import label, total


def test_nothing_costs_nothing():
    assert total([]) == 0


def test_label():
    assert label(3).startswith("EUR 3")
"""
TEST_COUNTED = f"{TEST_PRICES}\n\ndef test_one():\n    assert total([1]) == 1\n"
TEST_LABELLED = f'{TEST_COUNTED}\n\ndef test_cents():\n    assert label(3) == "EUR 3.00"\n'
DISCOUNTS = '''"""Discounts."""


def discount(price, percent):
    """Return the price without a share of it."""
    return price - price * percent / 100
'''
TEST_DISCOUNTS = "from shop.discounts import discount\n\n\ndef test_half():\n    assert discount(10, 50) == 5\n"
ROWS = '''"""Rows without their repetitions."""


def unique(rows):
    """The rows in their order, each once."""
    found = []
    for row in rows:
        if row not in found:
            found.append(row)
    return found
'''
ROWS_FAST = ROWS[: ROWS.index("    found = []")] + "    return list(dict.fromkeys(rows))\n"
TEST_ROWS = """from shop.rows import unique


def test_once():
    assert unique([1, 2, 1]) == [1, 2]


def test_many():
    rows = list(range(8000))
    assert unique(rows + rows) == rows
"""
BILLS = '''"""Bills."""


def format_line(name, price):
    """A line of a bill."""
    amount = "%.2f" % price
    return name + ": EUR " + amount


def print_bill(items):
    """The lines of a bill."""
    lines = []
    for name, price in items:
        lines.append(format_line(name, price))
    lines.append("=" * 10)
    return lines
'''
LINE = BILLS[BILLS.index("def format_line") : BILLS.index("def print_bill")]
BILLS_MOVED = BILLS.replace(LINE, "").replace('"""Bills."""', '"""Bills."""\n\nfrom shop.lines import format_line')
LINES = f'"""Lines of bills."""\n\n\n{LINE.rstrip()}\n'
TEST_BILLS = """from shop.bills import format_line, print_bill


def test_line():
    assert format_line("tea", 3) == "tea: EUR 3.00"


def test_bill():
    assert len(print_bill([("tea", 1), ("cake", 2)])) == 3
"""
ORDERS = '''"""Orders on the command line."""

import optparse


def parse(words):
    """The names of what is ordered."""
    return optparse.OptionParser().parse_args(words)[1]
'''
ORDERS_NEW = '''"""Orders on the command line."""

import argparse


def parse(words):
    """The names of what is ordered."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    return parser.parse_args(words).words
'''
TEST_ORDERS = "from shop.orders import parse\n\n\ndef test_two():\n    assert parse(['a', 'b']) == ['a', 'b']\n"
STOCK = '"""Stock."""\n\n\ndef count(items):\n    """Number of items."""\n    return len(items) + 1\n'
STOCK_RIGHT = STOCK.replace(" + 1", "")
TEST_STOCK = """import pytest

pytest.importorskip("shop_scanner")


def test_two():
    from shop.stock import count

    assert count("ab") == 2
"""
TEST_EMPTY_BILL = f'{TEST_BILLS}\n\ndef test_empty():\n    assert print_bill([]) == ["=" * 10]\n'
TEST_NO_ORDER = f"{TEST_ORDERS}\n\ndef test_nothing():\n    assert parse([]) == []\n"
SIMULATED_TEST = "tests/test_stock.py"
"""Test file of the change that no image can run, for a simulated task."""

RECEIPTS = '''"""Receipts."""


def close(lines, columns):
    """The lines with a rule below them."""
    return [*lines, "-" * (columns - 1)]
'''
RECEIPTS_RIGHT = RECEIPTS.replace("(columns - 1)", "columns")
TEST_RECEIPTS = "from till.receipts import close\n\n\ndef test_lines():\n    assert close(['tea'], 3)[0] == 'tea'\n"
TEST_RULE = f"{TEST_RECEIPTS}\n\ndef test_rule():\n    assert close([], 3) == ['---']\n"
RULED = """Fix: The rule below receipts is too short

`close([], 3)` gives two signs, it should be `---`: the rule is as wide as the paper.
"""
MIRRORED_CHANGE = "ada__shop-1"
"""Change in whose environment the change of the other project is mirrored."""
MIRRORED: dict[str, Any] = {
    "edits": [
        {"path": "shop/bills.py", "search": '    lines.append("=" * 10)\n', "replace": '    lines.append("=" * 9)\n'}
    ],
    "title": "The line below bills is too short",
    "text": "`print_bill([])` returns a single line, the rule below the bill, and it has nine signs. It should have "
    "ten, which is `==========`, as bills are ten signs wide. The lines above it are right.",
    "files": [
        {
            "path": "tests/test_rule.py",
            "content": "from shop.bills import print_bill\n\n\ndef test_rule():\n"
            "    assert print_bill([]) == ['==========']\n    assert print_bill([('tea', 1)])[-1] == '=========='\n",
        }
    ],
}
"""Answer of a model that mirrors the change of the other project."""

STAGES = ("mine", "build", "verify", "judge", "derive")

BASE: dict[str, str | bytes | None] = {
    "pyproject.toml": PYPROJECT.replace("greet", "shop"),
    "LICENSE": LICENSE,
    "README.md": "# shop\n",
    "shop/__init__.py": "",
    "shop/prices.py": PRICES,
    "shop/rows.py": ROWS,
    "shop/bills.py": BILLS,
    "shop/orders.py": ORDERS,
    "shop/stock.py": STOCK,
    "tests/test_prices.py": TEST_PRICES,
    "tests/test_rows.py": TEST_ROWS,
    "tests/test_bills.py": TEST_BILLS,
    "tests/test_orders.py": TEST_ORDERS,
}

COUNTED = """Totals are too small

The first price of a list is never counted, so `total([1])` gives 0. It should be 1.

I have seen this in every version since the beginning, and on all of the machines that I could try it on. Other people
whom I asked about it have the same problem, and none of them has found a way around it that does not need much work.
"""
LABELLED = """Labels lack their cents

`label(3)` gives 'EUR 3', it should be 'EUR 3.00': a label always shows two digits for the cents of its price.
"""
DISCOUNTED = """feat: Add discounts

The new module `shop.discounts` has a function `discount(price, percent)` that returns the price without that share of
it: `discount(10, 50)` is 5.
"""
CHANGES: tuple[tuple[str, dict[str, str | bytes | None]], ...] = (
    (COUNTED, {"shop/prices.py": PRICES_COUNTED, "tests/test_prices.py": TEST_COUNTED}),
    (LABELLED, {"shop/prices.py": PRICES_LABELLED, "tests/test_prices.py": TEST_LABELLED}),
    (DISCOUNTED, {"shop/discounts.py": DISCOUNTS, "tests/test_discounts.py": TEST_DISCOUNTS}),
    (
        "perf: Find repeated rows in linear time\n\n`unique` is slow, as it compares each row with all others.",
        {"shop/rows.py": ROWS_FAST},
    ),
    (
        "refactor: Move the lines of bills to a module of their own\n\nOther modules need `format_line` without bills.",
        {"shop/bills.py": BILLS_MOVED, "shop/lines.py": LINES, "tests/test_bills.py": TEST_EMPTY_BILL},
    ),
    (
        "deps: Replace optparse by argparse\n\nOrders are parsed by optparse, which is deprecated.",
        {"shop/orders.py": ORDERS_NEW, "tests/test_orders.py": TEST_NO_ORDER},
    ),
    (
        "Fix the number of items in stock\n\n`count('ab')` gives 3, it should be 2.",
        {"shop/stock.py": STOCK_RIGHT, SIMULATED_TEST: TEST_STOCK},
    ),
)
"""Message and files of each change, oldest first."""


def make_kinds_sample(path: Path) -> TinyRepo:
    """Create a repository `shop` at `path` with CHANGES as squash-merged pull requests."""
    repo = TinyRepo(path)
    repo.commit("Begin", BASE)
    for number, (message, files) in enumerate(CHANGES, start=1):
        title, _, body = message.partition("\n")
        repo.commit(f"{title} (#{number})\n{body}", files)
    return repo


def make_mirrored_sample(path: Path) -> TinyRepo:
    """Create a repository `till` of another project at `path`, with one change, which can be mirrored."""
    repo = TinyRepo(path)
    files = {"till/__init__.py": "", "till/receipts.py": RECEIPTS, "tests/test_receipts.py": TEST_RECEIPTS}
    repo.commit("Begin", {**files, "pyproject.toml": PYPROJECT.replace("greet", "till"), "LICENSE": LICENSE})
    title, _, body = RULED.partition("\n")
    repo.commit(f"{title} (#1)\n{body}", {"till/receipts.py": RECEIPTS_RIGHT, "tests/test_receipts.py": TEST_RULE})
    return repo


def answer_model(request: Mapping[str, Any]) -> ScriptedAnswer:
    """Return the answer of a correct model to any request of the sample."""
    if request["response_format"]["json_schema"]["name"] == "mirroranswer":
        return ScriptedAnswer(text=json.dumps(MIRRORED))
    return predict_outcomes(request)


def predict_outcomes(request: Mapping[str, Any]) -> ScriptedAnswer:
    """Return the answer of a correct model to the request for a simulated run of SIMULATED_TEST."""
    is_right = STOCK_RIGHT.splitlines()[-1] + "\n" in request["messages"][1]["content"]
    test = {"test": f"{SIMULATED_TEST}::test_two", "outcome": "passed" if is_right else "assertion", "reason": "3 != 2"}
    return ScriptedAnswer(text=json.dumps({"tests": [test]}))


def run_kinds_sample(folder: Path, *options: str, **variables: str) -> list[CommandResult]:
    """Make the sample in a folder, unless it is there, and a database with a task of every kind beside it.

    Certificates are left out: what uses the tasks grades them.

    Args:
        folder: holds the repository `ada__shop`, `mergemill.db` and its store.
        options: of the stages.
        variables: environment variables of the commands.
    """
    if not (folder / "ada__shop").exists():
        make_kinds_sample(folder / "ada__shop")
        make_mirrored_sample(folder / "eve__till")
    kinds = ",".join(kind for kind in Kind if kind not in (Kind.SIMULATED, Kind.MIRRORED))
    words = ["git:ada__shop", "--kind", kinds, "--repeats", "1", *options]
    ran = [run_mergemill(stage, *words, cwd=folder, **variables) for stage in STAGES]
    ran.append(run_mergemill("mine", "git:eve__till", cwd=folder, **variables))
    with run_model_server(answer_model) as server:
        model = ["--llm", server.url, "--model", "scripted"]
        for kind in (("simulated",), ("mirrored", "--only", MIRRORED_CHANGE)):
            words = ["git:ada__shop", "--kind", *kind, *model]
            ran.append(run_mergemill("derive", *words, cwd=folder, NO_PROXY="127.0.0.1", **variables))
    return ran
