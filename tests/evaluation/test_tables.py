"""Sites in tables of cases and in calls of helpers: which columns and arguments hold expected values."""

from __future__ import annotations

from random import Random

import pytest

from evaluation.controls.blocks import find_blocks, parse_test_file
from evaluation.controls.sites import list_sites
from evaluation.controls.tables import list_changed_ids

GO = """\
package a

func checkSlug(t *testing.T, raw, sep string, slug string) {
	if Slug(raw, sep) != slug {
		t.Fatalf("expected '%v', got '%v'", slug, Slug(raw, sep))
	}
}

type lengthCase struct {
	in    string
	total int
}

func TestLength(t *testing.T) {
	cases := []struct {
		in, sep string
		total   int
	}{
		{"alpha", "dash", 17},
		{in: "gamma", total: 23},
	}
	for _, tt := range cases {
		if got := Length(tt.in, tt.sep); got != tt.total {
			t.Errorf("got %v", got)
		}
	}
	named := map[string]lengthCase{"first": {"kappa", 31}}
	run(named)
	checkSlug(t, "Eps Zeta", "+", "eps")
}
"""
PYTHON = """\
def check_slug(text, slug):
    result = slugify(text)
    assert result == slug


def make(text):
    return Document(text)


class TestSlug(unittest.TestCase):
    def same(self, text, slug, sep="-"):
        self.assertEqual(slugify(text, sep), slug)

    def test_slug(self):
        self.same("Hello", "hello", "+")
        check_slug("Other", "other")
        self.assertEqual(make("Third").slug, "third")
"""
EXPANDED = """\
class TestWeight(unittest.TestCase):
    @parameterized.expand([("apple", 10), ("pear", 22)])
    def test_weight(self, name, weight):
        self.assertEqual(weigh(name), weight)
"""
PARAMETRIZED = """\
@pytest.mark.parametrize(("name", "weight"), [
    ("apple", 10),
    pytest.param("pear", 22, id="large"),
])
@pytest.mark.parametrize("unit", ["gram"])
@pytest.mark.parametrize("scale", SCALES)
def test_weight(name, weight, unit, scale):
    assert weigh(name, unit, scale) == weight
"""
JAVASCRIPT = """\
function checkSlug(raw, out) {
  expect(slug(raw)).toBe(out)
}

test("slugs", () => {
  const cases = [{raw: "Alpha", out: "alpha"}, {raw: "Beta", out: "beta"}]
  for (const c of cases) expect(slug(c.raw)).toBe(c.out)
  checkSlug("Gamma", "gamma")
})
"""

EACH = """\
describe("slugs", () => {
  it.each([["Alpha", "alpha"], ["Beta", "beta"]])("slug of %s", (raw: string, out: string) => {
    expect(slug(raw)).toBe(out)
  })
})
"""
COMPUTED = """\
describe("slugs", () => {
  const cases = [{ raw: "Alpha", out: "alpha" }, { raw: "Beta", out: "beta" }]
  for (const c of cases) {
    test(c.raw, () => {
      expect(slug(c.raw)).toBe(c.out)
    })
  }
})
"""


@pytest.mark.parametrize(
    ("path", "source", "expected", "inputs"),
    [
        (
            "a_test.go",
            GO,
            {"17", "23", "31", '"eps"'},
            {'"alpha"', '"dash"', '"gamma"', '"first"', '"kappa"', '"Eps Zeta"'},
        ),
        ("test_a.py", PYTHON, {'"hello"', '"other"', '"third"'}, {'"Hello"', '"Other"', '"Third"'}),
        ("test_a.py", EXPANDED, {"10", "22"}, {'"apple"', '"pear"'}),
        ("test_a.py", PARAMETRIZED, {"10", "22"}, {'"apple"', '"pear"', '"gram"'}),
        ("a.test.ts", EACH, {'"alpha"', '"beta"'}, set()),
        ("a.test.js", COMPUTED, {'"alpha"', '"beta"'}, {'"Alpha"', '"Beta"'}),
        ("a.test.js", JAVASCRIPT, {'"alpha"', '"beta"', '"gamma"'}, {'"Alpha"', '"Beta"', '"Gamma"'}),
    ],
)
def test_a_name_that_an_assertion_compares_makes_its_values_expected(
    path: str, source: str, expected: set[str], inputs: set[str]
) -> None:
    file = parse_test_file(path, source.encode())
    assert file is not None
    (block,) = find_blocks(file)
    sites = list_sites(file, block, frozenset(), Random(1))
    literals = {(site.literal, site.is_input) for site in sites if site.literal}
    assert {literal for literal, is_input in literals if not is_input} == expected
    assert {literal for literal, is_input in literals if is_input} == inputs


OWN_HELPERS = """\
def test_numbers():
    def convert(text, number):
        result = parse(text)
        assert result, "{} matches nothing".format(text)
        assert result == number

    convert("x 40", 40)


def test_names():
    def convert(text, unit):
        assert parse(text, unit)

    convert("y", "gram")
    assert len(parse("z")) == 40
"""


def test_a_test_calls_the_function_that_it_defines_itself() -> None:
    """Another test has one of the same name. The message of an assertion is no value."""
    file = parse_test_file("test_a.py", OWN_HELPERS.encode())
    assert file is not None
    first, second = find_blocks(file)
    literals = [
        {(s.literal, s.is_input) for s in list_sites(file, b, frozenset(), Random(1)) if s.literal}
        for b in (first, second)
    ]
    assert literals == [
        {('"x 40"', True), ("40", False)},
        {('"y"', True), ('"gram"', True), ('"z"', True), ("40", False)},
    ]


def test_lines_of_the_tree_do_not_make_equal_values_of_new_lines_known() -> None:
    source = "def test_a():\n    assert f(1) == 4000\n    assert f(2) == 4000\n    assert f(3) == 4000\n"
    file = parse_test_file("test_a.py", source.encode())
    assert file is not None
    (block,) = find_blocks(file)
    sites = list_sites(file, block, frozenset({b"assert f(1) == 4000"}), Random(1))
    assert sorted((len(site.spans), site.is_known) for site in sites if site.literal == "4000") == [
        (1, True),
        (2, False),
    ]


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (["f[1]", "f[2]"], ["f[1]", "f[3]"], {"f[2]": "f[3]"}),
        (["f[1]", "f[2]"], ["f[2]", "f[1]"], None),
        (["f[1]", "f[2]"], ["f[1]"], None),
        (["f[1]", "f[2]"], ["f[10]", "f[11]"], {"f[1]": "f[10]", "f[2]": "f[11]"}),
        (["f[1]", "f[2]"], ["f[3]", "f[3]"], None),
    ],
)
def test_ids_are_matched_only_where_it_is_clear_which_test_is_which(
    before: list[str], after: list[str], changed: dict[str, str] | None
) -> None:
    assert list_changed_ids(before, after) == changed
