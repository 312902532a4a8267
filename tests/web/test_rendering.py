"""Texts of repositories as HTML: statements, patches, and each string of the hostile corpus on its own."""

from __future__ import annotations

import subprocess
import sys
from html import escape
from html.parser import HTMLParser

import pytest
from markupsafe import Markup

from mergemill.web.diffs import render_patch
from mergemill.web.rendering import build_address, format_duration, make_templates
from mergemill.web.statement import MAX_RENDERED_CHARACTERS, mark_source, render_statement
from mergemill.web.syntax import highlight_code, highlight_file_lines
from mergemill.web.visible_text import make_visible, remove_ansi_sequences
from tests.web.hostile import PATCH, STRINGS
from tests.web.seed import GOLD_PATCH, STATEMENT

TAGS = frozenset(
    ("p", "em", "strong", "s", "code", "pre", "span", "mark", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul",
     "ol", "li", "hr", "br", "a", "table", "thead", "tbody", "tr", "th", "td")
)  # fmt: skip
ATTRIBUTES = frozenset({"class", "href", "title", "rel", "target", "tabindex", "scope", "start"})


class TagReader(HTMLParser):
    """Notes every tag and attribute that a text must not produce, and the text itself."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        unknown = [name for name, _ in attrs if name not in ATTRIBUTES]
        address = dict(attrs).get("href") or "https:"
        if tag not in TAGS or unknown or not address.startswith(("https:", "http:", "mailto:")):
            self.foreign.append(f"{tag} {attrs}")

    def handle_comment(self, data: str) -> None:
        self.foreign.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.foreign.append(f"declaration {decl}")

    def handle_data(self, data: str) -> None:
        self.text += data


def read_tags(html: str) -> TagReader:
    reader = TagReader()
    reader.feed(str(html))
    reader.close()
    return reader


@pytest.mark.parametrize("text", STRINGS, ids=range(len(STRINGS)))
def test_a_hostile_string_gives_no_markup(text: str) -> None:
    line = text.replace("\n", " ").replace("\r", " ")
    lines = [row.html for file in render_patch(PATCH.format(text=line)).files for row in file.lines]
    assert read_tags(render_statement(text, [text])).foreign == []
    for html in (
        mark_source(text, [text]),
        highlight_code(make_visible(text), "html"),
        Markup("\n").join(highlight_file_lines(make_visible(text), "x.html")),
        make_templates().from_string("{{ text }}").render(text=text),
    ):
        reader = read_tags(html)
        assert reader.foreign == []
        assert "".join(reader.text.split()) == "".join(make_visible(text).split())
    assert all(read_tags(html).foreign == [] for html in lines)
    assert sum(make_visible(line).strip() in read_tags(html).text for html in lines) >= 3


def test_a_statement_is_markdown_without_images() -> None:
    html = render_statement(STATEMENT)
    assert "<h2>Expected behaviour</h2>" in html
    assert '<th scope="col">input</th>' in html
    assert '<pre class="code" tabindex="0"><code><span class="o">&gt;&gt;</span>' in html
    assert 'href="https://example.org/screen.png"' in html
    assert "<img" not in html


@pytest.mark.parametrize(
    ("text", "quote", "marked"),
    [
        ("**not** raise.", "not raise", "<strong><mark>not</mark></strong><mark> raise</mark>"),
        ("It must\nnot raise.", "must not raise", "<mark>must</mark>\n<mark>not raise</mark>"),
        ("Use `a < b` here.", "`a < b`", "<code><mark>a &lt; b</mark></code>"),
        ("    x = 1\n", "x = 1", "<code><mark>x = 1</mark>\n</code>"),
        ("one two two", "two", "one <mark>two</mark> <mark>two</mark>"),
    ],
)
def test_quotes_are_marked_where_they_stand(text: str, quote: str, marked: str) -> None:
    assert marked in render_statement(text, [quote])


def test_overlapping_quotes_are_one_mark() -> None:
    assert "<mark>abcdef</mark>" in mark_source("abcdef", ["abcd", "cdef"])


def test_a_long_statement_is_shown_as_it_is() -> None:
    assert render_statement("#" * (MAX_RENDERED_CHARACTERS + 1)).startswith('<pre class="source">')


def test_a_patch_has_numbers_and_highlighted_lines() -> None:
    (file,) = render_patch(GOLD_PATCH).files
    assert (file.path, file.added, file.removed) == ("greet.py", 7, 2)
    removed = next(line for line in file.lines if line.kind == "removed")
    assert (removed.old, removed.new) == (7, None)
    last = file.lines[-1]
    assert (last.kind, last.old, last.new) == ("context", 12, 17)
    assert '<span class="k">return</span>' in last.html


@pytest.mark.parametrize(
    "patch",
    [
        "",
        "\n",
        "no diff",
        "@@ -1 +1 @@\n-a\n+b",
        "diff --git a/x b/x\nBinary files differ",
        "@@ -1,9 +1,9 @@\n+cut",
        "+++ b/x",
        "@@ -0,0 +1 @@\n+a\n\\ No newline",
    ],
)
def test_any_text_is_a_patch(patch: str) -> None:
    view = render_patch(patch)
    assert view.omitted == 0
    assert bool(view.files) == bool(patch.strip() and patch != "+++ b/x")


def test_a_huge_patch_is_cut() -> None:
    assert render_patch("@@ -0,0 +1,9000 @@\n" + "+x\n" * 9000).omitted == 7501


def test_hidden_characters_are_visible() -> None:
    assert make_visible("a\u202eb\x00\u200b\tc\r\n") == "a⟨U+202E⟩b⟨U+0000⟩⟨U+200B⟩\tc\n"
    assert remove_ansi_sequences("\x1b[31mred\x1b[0m \x1b]0;title\x07end") == "red end"


@pytest.mark.parametrize(
    ("name", "address"), [("a__b-1.bugfix", "a__b-1.bugfix"), ("..", "id"), ("a/b", "id"), ("a?b", "id")]
)
def test_only_plain_names_are_addresses(name: str, address: str) -> None:
    assert build_address(name, "id") == address


def test_durations_are_short() -> None:
    assert [format_duration(n) for n in (0.42, 42, 200, 7500)] == ["0.4 s", "42 s", "3 min 20 s", "2 h 05 min"]
    assert escape(format_duration(None)) == "\u2013"


@pytest.mark.parametrize(
    ("path", "code", "first"),
    [
        ("src/a.py", "def f(): pass", '<span class="k">def</span>'),
        ("CMakeLists.txt", "if(WIN32)", '<span class="nb">if</span>'),
        ("a.unknown", "def <b>", "def &lt;b&gt;"),
    ],
)
def test_a_file_is_highlighted_by_its_name(path: str, code: str, first: str) -> None:
    assert highlight_file_lines(code, path)[0].startswith(first)


def test_plug_ins_of_other_packages_are_not_loaded() -> None:
    """One of them takes longer to load than a page may."""
    program = (
        "import sys\n"
        "from mergemill.web.syntax import highlight_file_lines\n"
        "highlight_file_lines('x = 1', 'a.py'), highlight_file_lines('x', 'unknown')\n"
        "print([name for name in sys.modules if 'pygmentplugin' in name or name == 'importlib.metadata'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
