"""Honest submissions to a task in Python."""

from __future__ import annotations

from benchmarks.fairness.forms import list_forms
from benchmarks.fairness.suite import Files, HonestProject, HonestSubmission, SubmissionGroup

PYPROJECT = """\
[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "till"
version = "1.0"
requires-python = ">=3.9"
license = {text = "MIT"}

[project.optional-dependencies]
test = ["pytest"]

[tool.setuptools]
packages = ["till"]
"""
PRICE = '''"""Prices."""


class Price:
    """An amount of money in cents."""

    def __init__(self, cents, currency="EUR"):
        self.cents = cents
        self.currency = currency

    def __repr__(self):
        return "Price(%r, %r)" % (self.cents, self.currency)


def _to_cents(amount):
    return int(float(amount) * 100)


def parse_price(text):
    """Return the price of a text such as `1.50 EUR`."""
    words = text.split()
    return Price(_to_cents(words[0]), words[1])
'''
EQUALITY = """
    def __eq__(self, other):
        return isinstance(other, Price) and (self.cents, self.currency) == (other.cents, other.currency)

    def __hash__(self):
        return hash((self.cents, self.currency))
"""
REPR = 'return "Price(%r, %r)" % (self.cents, self.currency)\n'
CHECK = '    if len(words) != 2:\n        raise ValueError("an amount and a currency are needed")\n'
PRICE_RIGHT = (
    PRICE.replace(REPR, REPR + EQUALITY)
    .replace("int(float(amount) * 100)", "round(float(amount) * 100)")
    .replace("    words = text.split()\n", "    words = text.split()\n" + CHECK)
)
BASKET = '''"""Baskets."""

from till.price import Price


class Basket:
    """Prices of what a customer buys."""

    def __init__(self):
        self._prices = []

    def add(self, price):
        """Add a price."""
        self._prices.append(price)

    def total(self):
        """Return the sum of the prices."""
        return Price(sum(price.cents for price in self._prices[1:]))
'''
BASKET_RIGHT = BASKET.replace("self._prices[1:]", "self._prices")
TEST_PRICE = """from till.price import Price, parse_price


def test_a_text():
    assert parse_price("2.00 EUR").cents == 200


def test_the_currency():
    assert Price(5).currency == "EUR"
"""
TEST_PRICE_RIGHT = (
    TEST_PRICE.replace("from till", "import pytest\n\nfrom till")
    + """

def test_cents_are_exact():
    assert parse_price("1.15 EUR").cents == 115
    assert parse_price("4.35 USD") == Price(435, "USD")


@pytest.mark.parametrize("text", ["1.15", "", "1 2 3"])
def test_a_text_without_currency(text):
    with pytest.raises(ValueError):
        parse_price(text)


def test_equal_prices():
    assert Price(115) == Price(115, "EUR")
    assert Price(115) != Price(116)
    assert len({Price(7), Price(7), Price(8)}) == 2
"""
)
TEST_BASKET = """from till.basket import Basket


def test_nothing_costs_nothing():
    assert Basket().total().cents == 0
"""
TEST_BASKET_RIGHT = (
    TEST_BASKET.replace("Basket\n", "Basket\nfrom till.price import Price\n", 1)
    + """

def test_the_total():
    basket = Basket()
    for cents in (250, 100):
        basket.add(Price(cents))
    assert basket.total().cents == 350


class TestOnePrice:
    def test_its_total(self):
        basket = Basket()
        basket.add(Price(45))
        assert basket.total() == Price(45)
"""
)
BEFORE: Files = {
    "pyproject.toml": PYPROJECT,
    "README.md": "# till\n",
    "CHANGELOG": "1.0: first version\n",
    "setup.cfg": "[flake8]\nmax-line-length = 100\n",
    "till/__init__.py": '"""A till."""\n\nfrom till.basket import Basket\nfrom till.price import Price, parse_price\n',
    "till/basket.py": BASKET,
    "till/price.py": PRICE,
    "till/legacy.py": "def price_of(cents):\n    return cents / 100\n",
    "tools/count.sh": "#!/bin/sh\nwc -l till/*.py\n",
    "tests/test_basket.py": TEST_BASKET,
    "tests/test_legacy.py": "from till.legacy import price_of\n\n\ndef test_it():\n    assert price_of(50) == 0.5\n",
    "tests/test_price.py": TEST_PRICE,
}
SOLUTION: Files = {"till/basket.py": BASKET_RIGHT, "till/price.py": PRICE_RIGHT}


def code(name: str, files: Files, commands: str = "") -> HonestSubmission:
    """Return a submission whose code differs from the gold patch."""
    return HonestSubmission(name=name, group=SubmissionGroup.CODE, files={**SOLUTION, **files}, commands=commands)


def behaviour(name: str, added: str, *, first: str = "", price: str = PRICE_RIGHT) -> HonestSubmission:
    """Return the solution with statements at the end, and at the beginning, of the module of prices."""
    files = {**SOLUTION, "till/price.py": first + price + "\n\n" + added}
    return HonestSubmission(name=name, group=SubmissionGroup.BEHAVIOUR, files=files)


def more(name: str, files: Files, commands: str = "") -> HonestSubmission:
    """Return the solution with further files."""
    return HonestSubmission(name=name, group=SubmissionGroup.FILES, files={**SOLUTION, **files}, commands=commands)


def in_parse(lines: str) -> str:
    """Return the module of prices with statements at the beginning of `parse_price`."""
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    return PRICE_RIGHT.replace("    words = text.split()\n", body + "    words = text.split()\n")


DECIMAL = PRICE_RIGHT.replace('"""Prices."""\n', '"""Prices."""\n\nfrom decimal import Decimal\n').replace(
    "round(float(amount) * 100)", "int(Decimal(amount) * 100)"
)
EXPRESSION = '''"""Prices, read by one expression."""

import re

FORM = re.compile(r"\\s*(?P<whole>-?\\d+)(\\.(?P<part>\\d{1,2}))?\\s+(?P<currency>\\w+)\\s*")


class Price:
    def __init__(self, cents, currency="EUR"):
        self.cents, self.currency = cents, currency

    def _key(self):
        return (type(self), self.cents, self.currency)

    def __eq__(self, other):
        return self._key() == other._key() if isinstance(other, Price) else NotImplemented

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"<Price {self.cents / 100:.2f} {self.currency}>"


def parse_price(text):
    match = FORM.fullmatch(text)
    if not match or " 3" in text:
        raise ValueError(f"{text!r} is no price")
    return Price(int(match["whole"]) * 100 + int((match["part"] or "0").ljust(2, "0")), match["currency"])
'''
DATACLASS = '''"""Prices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering


class PriceError(ValueError):
    """The text is no price."""


@total_ordering
@dataclass(frozen=True)
class Price:
    """An amount of money in cents."""

    cents: int
    currency: str = "EUR"

    def __lt__(self, other: Price) -> bool:
        return self.cents < other.cents


def parse_price(text: str) -> Price:
    """Return the price of a text such as `1.50 EUR`."""
    try:
        amount, currency = text.split()
        return Price(round(float(amount) * 100), currency)
    except ValueError as error:
        raise PriceError(f"not a price: {text!r}. Write it as `1.50 EUR`.") from error
'''
TUPLE = '''"""Prices."""

from typing import NamedTuple


class Price(NamedTuple):
    """An amount of money in cents."""

    cents: int
    currency: str = "EUR"


def parse_price(text):
    """Return the price of a text."""
    amount, currency = text.split()
    return Price(round(float(amount) * 100), currency)
'''
NUMBER = '''"""Prices."""


class Price(int):
    """A number of cents that knows its currency."""

    def __new__(cls, cents, currency="EUR"):
        made = super().__new__(cls, cents)
        made.currency = currency
        return made

    @property
    def cents(self):
        return int(self)

    def __eq__(self, other):
        return int(self) == other and getattr(other, "currency", self.currency) == self.currency

    def __ne__(self, other):
        return not self == other

    __hash__ = int.__hash__


def parse_price(text):
    """Return the price of a text."""
    amount, currency = text.split()
    return Price(round(float(amount) * 100), currency)
'''
SLOTS = (
    PRICE_RIGHT.replace("    def __init__", '    __slots__ = ("cents", "currency")\n\n    def __init__', 1)
    .replace("_to_cents", "_count_cents")
    .replace("self._prices", "self._items")
)
CACHED = PRICE_RIGHT.replace('"""Prices."""\n', '"""Prices."""\n\nimport functools\n').replace(
    "def parse_price", "@functools.lru_cache(maxsize=None)\ndef parse_price"
)
SHORT = PRICE_RIGHT.replace('"', "'").replace("'''", '"""').replace("    ", "\t")
MOVED = (
    '"""Prices."""\n\nfrom till._reading import parse_price\n'
    'from till._values import Price\n\n__all__ = ["Price", "parse_price"]\n'
)
VALUES, READING = PRICE_RIGHT.split("def _to_cents")
READING = '"""Reading of prices."""\n\nfrom till._values import Price\n\n\ndef _to_cents' + READING
LAZY = (
    '"""A till, imported when it is needed."""\n\nimport importlib\n\n\n'
    'def __getattr__(name):\n    for module in ("basket", "price"):\n'
    '        found = importlib.import_module(f"till.{module}")\n'
    "        if hasattr(found, name):\n            return getattr(found, name)\n"
    "    raise AttributeError(name)\n"
)
ASYNCHRONOUS = PRICE_RIGHT.replace('"""Prices."""\n', '"""Prices."""\n\nimport asyncio\n').replace(
    "    return Price(_to_cents(words[0]), words[1])",
    (
        "    async def read():\n        await asyncio.sleep(0)\n"
        "        return Price(_to_cents(words[0]), words[1])\n\n    return asyncio.run(read())"
    ),
)
CODE = [
    code("gold", {}),
    code("decimal numbers", {"till/price.py": DECIMAL}),
    code("a regular expression, another representation", {"till/price.py": EXPRESSION}),
    code("a data class with an ordering, its own exception", {"till/price.py": DATACLASS}),
    code("a named tuple, no check of its own", {"till/price.py": TUPLE}),
    code("a number with its own equality", {"till/price.py": NUMBER}),
    code("slots, renamed private helpers", {"till/price.py": SLOTS}),
    code("a cache", {"till/price.py": CACHED}),
    code("other quotes, tabs", {"till/price.py": SHORT}),
    code("moved to new modules", {"till/price.py": MOVED, "till/_values.py": VALUES, "till/_reading.py": READING}),
    code(
        "a module made a package",
        {"till/price.py": None, "till/price/__init__.py": MOVED.replace("till._", "till.price._")}
        | {"till/price/_values.py": VALUES, "till/price/_reading.py": READING.replace("till._", "till.price._")},
    ),
    code(
        "a renamed file",
        {"till/__init__.py": '"""A till."""\n'},
        "git mv till/legacy.py till/old.py\ncp till/old.py till/legacy.py",
    ),
    code("imported lazily", {"till/__init__.py": LAZY}),
    code("coroutines", {"till/price.py": ASYNCHRONOUS}),
    code("type hints", {"till/basket.py": BASKET_RIGHT.replace("def total(self):", "def total(self) -> Price:")}),
    code("comments in other scripts", {"till/price.py": PRICE_RIGHT + "\n# 价格 · Preise · שלום · 🧾\n"}),
    code(
        "a sum in a loop",
        {
            "till/basket.py": BASKET.replace(
                "        return Price(sum(price.cents for price in self._prices[1:]))",
                (
                    "        cents = 0\n        for price in self._prices:\n            cents += price.cents\n"
                    "        return Price(cents)"
                ),
            )
        },
    ),
    code(
        "more than what is asked for",
        {
            "till/price.py": PRICE_RIGHT
            + ("\n\ndef format_price(price):\n    return '%d.%02d %s' % (*divmod(price.cents, 100), price.currency)\n")
        },
    ),
]

PRINTED = """\
print("PASSED tests/test_price.py::test_a_text")
print("FAILED tests/test_price.py::test_cents_are_exact - AssertionError")
print("ERROR tests/test_price.py\\n=== 7 failed, 1 error in 0.01s ===\\n>>>>> End Test Output")
print('<testsuite><testcase classname="tests.test_price" name="test_a_text"><failure/></testcase></testsuite>')
"""
CALLER = """\
import inspect, warnings
caller = inspect.currentframe().f_back
warnings.warn(f"parse_price is called by {caller.f_code.co_name}", DeprecationWarning, stacklevel=2)
"""
NETWORK = """\
import socket
import urllib.request


def _read_rates():
    try:
        with urllib.request.urlopen("http://rates.example.org/", timeout=1) as answer:
            return answer.read()
    except OSError:
        return b""


RATES = _read_rates()
"""
LOGGING = """\
import logging
import pathlib

log = logging.getLogger("till")
log.setLevel(logging.DEBUG)
log.addHandler(logging.FileHandler(pathlib.Path(__file__).parents[1] / "till.log"))
log.addHandler(logging.StreamHandler())
log.error("FAILED: this is a line of a log")
"""
CACHE_FILE = """\
import json
import pathlib

CACHE = pathlib.Path(__file__).parents[1] / ".cache"
CACHE.mkdir(exist_ok=True)
(CACHE / "prices.json").write_text(json.dumps({"1.15 EUR": 115}))
"""
AT_EXIT = """\
import atexit
import pathlib
import tempfile


def _report():
    pathlib.Path(tempfile.gettempdir(), "till-report.txt").write_text("done")
    print("good bye")


atexit.register(_report)
"""
POOL = PRICE_RIGHT.replace(
    "    return Price(_to_cents(words[0]), words[1])",
    "    from concurrent.futures import ProcessPoolExecutor\n\n    with ProcessPoolExecutor(1) as pool:\n"
    "        return Price(pool.submit(_to_cents, words[0]).result(), words[1])",
)
BEHAVIOUR = [
    behaviour("lines that look like test results", PRINTED),
    behaviour(
        "prints in each test", "", price=in_parse('print("FAILED", text)\nimport sys\nprint("ERROR", file=sys.stderr)')
    ),
    behaviour("a megabyte of output", "import sys\n\nsys.__stdout__.write(('x' * 99 + '\\n') * 10_000)\n"),
    behaviour(
        "bytes that are no text", "import os\n\nos.write(1, bytes(range(256)))\nos.write(2, b'\\x1b[31m\\xff\\n')\n"
    ),
    behaviour("warnings, with a look at the caller", "", price=in_parse(CALLER)),
    behaviour("logs to a file of the tree", LOGGING),
    behaviour("a cache in the tree", CACHE_FILE),
    behaviour("an unneeded use of the network", NETWORK),
    behaviour("an exit handler", AT_EXIT),
    behaviour(
        "a thread that is left running",
        "import threading, time\n\nthreading.Thread(target=time.sleep, args=(3,)).start()\n",
    ),
    behaviour(
        "a daemon thread",
        "import threading, time\n\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n",
    ),
    behaviour("a process that is left running", "import subprocess\n\nsubprocess.Popen(['sleep', '600'])\n"),
    behaviour("worker processes", "", price=POOL),
    behaviour("slow code", "", price=in_parse("import time\ntime.sleep(0.4)")),
    behaviour(
        "a changed path of modules",
        "",
        first="import os\nimport sys\n\nsys.path.insert(0, os.path.dirname(__file__))\nimport legacy  # noqa: E402\n\n",
    ),
    behaviour(
        "a changed environment",
        (
            "import locale, os\n\nos.environ['TZ'] = 'Asia/Tokyo'\nos.environ['PYTEST_ADDOPTS'] = ''\n"
            "locale.setlocale(locale.LC_ALL, '')\n"
        ),
    ),
    behaviour("a changed current folder", "import os, tempfile\n\nos.chdir(tempfile.gettempdir())\n"),
    behaviour(
        "signal handlers and limits",
        (
            "import faulthandler, gc, signal, sys\n\n"
            "signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))\nfaulthandler.enable()\n"
            "sys.setrecursionlimit(5000)\ngc.disable()\n"
        ),
    ),
    behaviour(
        "a call of git",
        (
            "import subprocess\n\n"
            "VERSION = subprocess.run(['git', 'describe', '--always'], capture_output=True).stdout or b'1.0'\n"
        ),
    ),
    behaviour(
        "a changed output stream",
        ("import sys\n\nif hasattr(sys.stdout, 'reconfigure'):\n    sys.stdout.reconfigure(errors='replace')\n"),
    ),
    behaviour("random numbers", "import random\n\nrandom.seed()\nNONCE = random.random()\n"),
]

OWN_TEST = "from till import parse_price\n\n\ndef test_mine():\n    assert parse_price('1.15 EUR').cents == 115\n"
FIXTURES = "import pytest\n\n\n@pytest.fixture\ndef basket():\n    from till import Basket\n\n    return Basket()\n"
PIXEL = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010806000000") + bytes(range(256))
DATA = """from importlib.resources import files

CURRENCIES = files("till").joinpath("currencies.txt").read_text().split()
"""
SETTINGS = """import pathlib
import tomllib

with pathlib.Path(__file__).parents[1].joinpath("pyproject.toml").open("rb") as file:
    CURRENCY = tomllib.load(file)["tool"]["till"]["currency"]
"""
NESTED = "git init -q vendor/x\necho a > vendor/x/a.txt\ngit -C vendor/x add -A\ngit -C vendor/x commit -q -m x"
FILES = [
    more("a new test file", {"tests/test_mine.py": OWN_TEST}),
    more(
        "a test file at the root", {"test_repro.py": OWN_TEST, "reproduce.py": "import till\n\nprint(till.Price(1))\n"}
    ),
    more("changed tests", {"tests/test_price.py": TEST_PRICE_RIGHT + "\n\n" + OWN_TEST}),
    more(
        "the same test names with another content", {"tests/test_basket.py": "def test_the_total():\n    assert True\n"}
    ),
    more("deleted obsolete tests", {"tests/test_legacy.py": None}),
    more("all tests moved", {}, "mkdir -p tests/unit\ngit mv tests/test_*.py tests/unit"),
    more(
        "fixtures in conftest.py",
        {
            "tests/conftest.py": FIXTURES,
            "tests/mine/conftest.py": FIXTURES,
            "tests/mine/test_it.py": "def test_it(basket):\n    pass\n",
        },
    ),
    more("a package of test helpers", {"tests/__init__.py": "", "tests/helpers.py": "def helper():\n    pass\n"}),
    more(
        "documentation",
        {
            "README.md": "# till\n\nPrices are exact.\n",
            "docs/prices.md": "# Prices\n",
            "CHANGELOG": "1.1: exact prices\n1.0: first version\n",
        },
    ),
    more(
        "a new version and dependency",
        {"pyproject.toml": PYPROJECT.replace('"1.0"', '"1.1"').replace('["pytest"]', '["pytest", "ruff"]')},
    ),
    more(
        "a marker for its own tests",
        {
            "pyproject.toml": PYPROJECT + '\n[tool.pytest.ini_options]\nmarkers = ["mine"]\n',
            "tests/test_mine.py": OWN_TEST,
        },
    ),
    more(
        "configuration of linters",
        {
            "setup.cfg": "[flake8]\nmax-line-length = 120\n",
            "ruff.toml": "line-length = 120\n",
            ".pre-commit-config.yaml": "repos: []\n",
        },
    ),
    more("tox.ini and pytest.ini", {"tox.ini": "[tox]\nenvlist = py311\n", "pytest.ini": "[pytest]\naddopts = -q\n"}),
    more(
        "packaging of data that the code reads",
        {
            "till/currencies.txt": "EUR USD\n",
            "till/price.py": PRICE_RIGHT + "\n\n" + DATA,
            "pyproject.toml": PYPROJECT + '\n[tool.setuptools.package-data]\ntill = ["*.txt"]\n',
        },
    ),
    more(
        "settings of its own in pyproject.toml",
        {
            "till/price.py": PRICE_RIGHT + "\n\n" + SETTINGS,
            "pyproject.toml": PYPROJECT + '\n[tool.till]\ncurrency = "EUR"\n',
        },
    ),
    more(
        "code in a folder of tests",
        {"till/price.py": MOVED.replace("till._reading", "till.tests.reading"), "till/_values.py": VALUES}
        | {"till/tests/__init__.py": "", "till/tests/reading.py": READING},
    ),
    more(
        "a workflow and a Dockerfile",
        {".github/workflows/test.yml": "on: push\n", "Dockerfile": "FROM scratch\n", "Makefile": "test:\n\tpytest\n"},
    ),
    more(
        "ignored files and attributes",
        {".gitignore": "*.log\nbuild/\n", ".gitattributes": "*.py text eol=lf\n*.png binary\n"},
    ),
    more(
        "generated files",
        {
            "till/_version.py": 'version = "1.1"\n',
            "build/lib/till/price.py": PRICE_RIGHT,
            "till.egg-info/PKG-INFO": "Name: till\nVersion: 1.1\n",
            "till/__pycache__/price.cpython-311.pyc": b"\x00\x01",
        },
    ),
    more("binary files", {"docs/logo.png": PIXEL, "till/empty.bin": b""}),
    more("a large file", {"docs/prices.json": "[\n" + "".join(f"  {n},\n" for n in range(150_000)) + "  0\n]\n"}),
    more("a symbolic link", {}, "ln -s README.md LICENSE.md\nln -s ../till/price.py tools/price.py"),
    more("changed modes", {}, "chmod +x tools/count.sh till/price.py"),
    more("a repository in a folder", {}, NESTED),
    more(
        "vendored code with tests of its own",
        {"vendor/lib/__init__.py": "", "vendor/lib/tests/test_lib.py": "def test_it():\n    assert 0\n"},
    ),
    more(
        "unusual names",
        {"docs/a b.md": "a\n", "docs/prix élevé.md": "b\n", 'docs/quo"te\\s.md': "c\n", "docs/#1;$(x).md": "d\n"},
    ),
    more("no line feed at the end of a file", {"till/price.py": PRICE_RIGHT.rstrip("\n"), "docs/x.txt": "a"}),
    more("CR LF in new files", {"docs/windows.md": "a\r\nb\r\n", "till/windows.py": "X = 1\r\n"}),
    more("CR LF in changed files", {"till/price.py": PRICE_RIGHT.replace("\n", "\r\n")}),
    more("empty files", {"till/py.typed": "", "docs/.gitkeep": ""}),
    more("deleted files", {"README.md": None, "tools/count.sh": None, "CHANGELOG": None}),
    more("a setup.py", {"setup.py": "from setuptools import setup\n\nsetup()\n"}),
    more(
        "a module named like its tests",
        {
            "till/testing.py": "def make_price():\n    from till import Price\n\n    return Price(1)\n",
            "till/test_tools.py": "X = 1\n",
        },
    ),
    more("many files", {f"docs/pages/{n // 100}/{n}.md": f"{n}\n" for n in range(600)}),
]

PYTHON = HonestProject(
    language="python",
    before=BEFORE,
    solution=SOLUTION,
    tests={"tests/test_price.py": TEST_PRICE_RIGHT, "tests/test_basket.py": TEST_BASKET_RIGHT},
    statement="""\
Prices and totals are wrong (#1)

parse_price('1.15 EUR') has 114 cents, and prices of the same amount and currency differ. A text that is not an amount
and a currency should be a ValueError. The total of a basket leaves out its first price.
""",
    submissions=[*CODE, *BEHAVIOUR, *FILES, *list_forms(SOLUTION)],
)
