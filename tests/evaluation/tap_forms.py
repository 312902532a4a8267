"""Forms of TAP with the results that are read from them; the table in `docs/guide/mine/languages.md` has them."""

from __future__ import annotations

from dataclasses import dataclass

HEADER = "TAP version 13"


@dataclass(frozen=True, kw_only=True)
class TapForm:
    """One form: lines of output above its plan, and the results (title, status) in their order."""

    about: str
    lines: tuple[str, ...]
    results: tuple[tuple[str, str], ...]
    file: str = "test/a.js"

    def render_row(self) -> str:
        """Return the form as a row of the table."""
        output = "<br>".join(f"`{line}`" for line in self.lines)
        results = "<br>".join(f"`{title}`: {status}" for title, status in self.results)
        return f"| {self.about} | {output} | {results} |"


def _form(about: str, *lines: str, file: str = "test/a.js", **results: str) -> TapForm:
    pairs = tuple((title, status) for title, status in results.items())
    return TapForm(about=about, lines=lines, results=pairs, file=file)


FORMS = (
    _form("a result", "ok 1 - adds", "not ok 2 - sums", adds="passed", sums="failed"),
    _form("without a number or a dash", "ok adds", "not ok sums", adds="passed", sums="failed"),
    _form("skipped", "ok 1 - adds # SKIP no disk", "ok 2 # skip no disk", adds="skipped", **{"(test 2)": "skipped"}),
    _form("to do", "not ok 1 - adds # TODO later", "ok 2 - sums # todo", adds="xfailed", sums="passed"),
    _form("both, as Test::More prints them", "not ok 1 - adds # TODO & SKIP later", adds="xfailed"),
    _form(
        "a directive without the second blank, in a file of Perl",
        "ok 1 - adds #skip no disk",
        file="t/a.t",
        adds="skipped",
    ),
    _form("the same in any other file", "ok 1 - opens #todo list", **{"opens #todo list": "passed"}),
    _form(
        "`#` without a blank before it, or another word behind it",
        "ok 1 - Range#skip drops",
        "ok 2 - fixes #12",
        "ok 3 - adds # skipping",
        **{"Range#skip drops": "passed", "fixes #12": "passed", "adds # skipping": "passed"},
    ),
    _form(
        "an escaped `#`", r"ok 1 - adds \# skip", r"not ok 2 - a\\b\#c", **{"adds # skip": "passed", r"a\b#c": "failed"}
    ),
    _form("a backslash of Test::More, which escapes it only in titles with `#`", r"ok 1 - a\\b", **{r"a\\b": "passed"}),
    _form("a backslash below a header", HEADER, r"ok 1 - a\\b", **{r"a\b": "passed"}),
    _form("a duration", "ok 1 - adds # time=12ms", "ok 2 - sums # (3 ms)", adds="passed", sums="passed"),
    _form(
        "tests of tape",
        HEADER,
        "# adds",
        "ok 1 zeros",
        "not ok 2 ones",
        **{"adds > zeros": "passed", "adds > ones": "failed"},
    ),
    _form(
        "directives of tape, in upper case and between blanks; all else is title, and nothing is escaped",
        HEADER,
        "# adds",
        "ok 1 ones # SKIP",
        "not ok 2 twos # TODO later",
        r"ok 3 a\b # todo #12",
        **{"adds > ones": "skipped", "adds > twos": "xfailed", r"adds > a\b # todo #12": "passed"},
    ),
    _form(
        "a title of tape like a line of its summary, which is below the plan",
        HEADER,
        "# tests 4",
        "ok 1 ones",
        **{"tests 4 > ones": "passed"},
    ),
    _form(
        "subtests, indented by four blanks",
        "# Subtest: adds",
        "    ok 1 - ones",
        "    1..1",
        "ok 1 - adds",
        **{"adds > ones": "passed", "adds": "passed"},
    ),
    _form(
        "subtests in braces; a title cannot end with ` {`",
        "ok 1 - adds {",
        "    ok 1 - ones",
        "    1..1",
        "}",
        **{"adds > ones": "passed", "adds": "passed"},
    ),
)


def render_table() -> str:
    """Return the table of all forms."""
    rows = "\n".join(form.render_row() for form in FORMS)
    return f"| form | output | read as |\n|---|---|---|\n{rows}\n"
