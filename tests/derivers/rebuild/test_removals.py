"""Removals of a file: functions, classes and modules, with the code that exists only for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from derivers.rebuild.removals import Level, RemovableFile, Removal, count_words
from tests.helpers import TinyRepo

SHOP = '''"""A shop."""

import math


class Cart:
    """Prices."""

    def __init__(self, prices):
        self.prices = prices
        self.discount = 0

    @property
    def total(self):
        """Sum of the prices."""
        result = 0
        for price in self.prices:
            result += _round(price)
        return result - self.discount


# Rounds up.
def _round(price):
    return _scale(price) / 100


def _scale(price):
    return math.ceil(price * 100)


# A label
# of two lines.
def label(text, width):
    if len(text) > width:
        return text[:width]
    return text.ljust(width)


def short(text):
    return label(text, 2)
'''


def list_removals(path: str, source: str, elsewhere: str = "") -> dict[tuple[Level, str], Removal]:
    parsed = RemovableFile.parse(path, source.encode())
    assert parsed is not None
    uses = count_words(source.encode()) + count_words(elsewhere.encode())
    return {(removal.level, removal.name): removal for removal in parsed.list_removals(uses)}


def apply(removal: Removal, source: str, folder: Path) -> str:
    repo = TinyRepo(folder)
    repo.commit("Start", {removal.path: source})
    subprocess.run(["git", "apply"], cwd=repo.path, input=removal.patch, check=True)
    return (repo.path / removal.path).read_text()


def test_functions_classes_and_modules_are_removed_unless_they_are_trivial() -> None:
    removals = list_removals("shop.py", SHOP)
    assert set(removals) == {
        (Level.BODY, "Cart.total"),
        (Level.BODY, "label"),
        (Level.CLASS, "Cart"),
        (Level.MODULE, "shop.py"),
    }


def test_a_removal_leaves_interfaces_and_takes_what_exists_only_for_it(tmp_path: Path) -> None:
    removal = list_removals("shop.py", SHOP)[Level.CLASS, "Cart"]
    assert [function.name for function in removal.functions] == ["Cart.__init__", "Cart.total"]
    assert removal.functions[1].interface == '@property\ndef total(self):\n    """Sum of the prices."""'
    assert set(removal.helpers) == {"_round", "_scale"}
    after = apply(removal, SHOP, tmp_path)
    assert after.count("raise NotImplementedError") == 2
    assert "_round" not in after
    assert "# Rounds up." not in after
    assert "return text.ljust(width)" in after


@pytest.mark.parametrize(
    ("elsewhere", "helpers"),
    [("", {"_round", "_scale"}), ("from shop import _scale", {"_round"}), ("docs of _round", set())],
)
def test_a_function_that_is_named_elsewhere_stays(elsewhere: str, helpers: set[str]) -> None:
    assert set(list_removals("shop.py", SHOP, elsewhere)[Level.BODY, "Cart.total"].helpers) == helpers


def test_the_functions_of_a_module_are_removed_together(tmp_path: Path) -> None:
    removal = list_removals("shop.py", SHOP, "from shop import label")[Level.MODULE, "shop.py"]
    assert [function.name for function in removal.functions] == ["Cart.__init__", "Cart.total", "label", "short"]
    assert removal.functions[2].interface == "# A label\n# of two lines.\ndef label(text, width):"
    after = apply(removal, SHOP, tmp_path)
    assert after.count("raise NotImplementedError") == 4
    assert "ljust" not in after


GO = """package shop

import "strings"

// Total is the sum.
func (c *Cart) Total(prices []int) int {
	sum := 0
	for _, price := range prices {
		sum += price
	}
	return sum
}

// Name is in capitals.
func (c Cart) Name(text string) string {
	name := strings.ToUpper(text)
	c.n++
	return name
}
"""


def test_methods_of_a_receiver_are_those_of_its_type(tmp_path: Path) -> None:
    removals = list_removals("shop.go", GO)
    assert set(removals) == {(Level.BODY, "Cart.Total"), (Level.BODY, "Cart.Name"), (Level.CLASS, "Cart")}
    after = apply(removals[Level.BODY, "Cart.Name"], GO, tmp_path)
    assert "strings" not in after
    assert "return *new(string)" in after


def test_of_equal_removals_there_is_one() -> None:
    helper = "func addAll(prices []int) int {\n\treturn len(prices)\n}\n"
    removals = list_removals("shop.go", GO.replace("return sum\n", "return addAll(prices)\n") + helper)
    # Without the helper, which goes with the class, the module has nothing else.
    assert set(removals) == {(Level.BODY, "Cart.Total"), (Level.BODY, "Cart.Name"), (Level.CLASS, "Cart")}


RUBY = """class Cart
  # The sum.
  def total(prices)
    sum = 0
    prices.each { |price| sum += price }
    sum
  end
end
"""
RUST = """impl Cart {
    /// The sum.
    #[inline]
    pub fn total(&self) -> u32 {
        let a = self.a;
        let b = a;
        a + b
    }
}

#[cfg(test)]
mod tests {
    fn helper() -> u32 {
        let a = 1;
        let b = 2;
        a + b
    }
}
"""
JAVASCRIPT = """/**
 * The sum.
 */
export const total = (prices) => {
  let sum = 0;
  prices.forEach((price) => { sum += price; });
  return sum;
};
"""


@pytest.mark.parametrize(
    ("path", "source", "name", "interface"),
    [
        ("cart.rb", RUBY, "Cart.total", "# The sum.\ndef total(prices)"),
        ("cart.rs", RUST, "Cart.total", "/// The sum.\n#[inline]\npub fn total(&self) -> u32"),
        ("cart.js", JAVASCRIPT, "total", "/**\n * The sum.\n */\nexport const total = (prices) =>"),
    ],
)
def test_an_interface_has_the_comments_before_it_and_tests_in_sources_stay(
    path: str, source: str, name: str, interface: str
) -> None:
    removals = list_removals(path, source)
    assert list(removals) == [(Level.BODY, name)]
    (function,) = removals[Level.BODY, name].functions
    assert function.interface == interface


def test_a_file_without_a_grammar_has_no_removals() -> None:
    assert RemovableFile.parse("shop.lua", b"function f() end") is None
