"""Honest submissions to a task in Go."""

from __future__ import annotations

from benchmarks.fairness.forms import list_forms
from benchmarks.fairness.suite import Files, HonestProject, HonestSubmission, SubmissionGroup

MODULE = "module example.org/till\n\ngo 1.21\n"
PRICE = """// Package till adds prices.
package till

import "strings"

// Largest returns the largest of some amounts in cents, 0 of none.
func Largest(amounts ...int) int {
	largest := 0
	for _, amount := range amounts {
		if amount > largest {
			largest = amount
		}
	}
	return largest
}

// Currency returns the second word of a price.
func Currency(text string) (string, error) {
	words := strings.Split(text, " ")
	return words[1], nil
}
"""
PRICE_RIGHT = (
    PRICE.replace("for _, amount", "for place, amount")
    .replace("if amount >", "if place == 0 || amount >")
    .replace('import "strings"', 'import (\n\t"errors"\n\t"strings"\n)')
    .replace(
        'strings.Split(text, " ")\n',
        'strings.Fields(text)\n\tif len(words) < 2 {\n\t\treturn "", errors.New("no currency")\n\t}\n',
    )
)
TEST = """package till

import "testing"

func TestLargest(t *testing.T) {
	if found := Largest(3, 7); found != 7 {
		t.Errorf("found %d", found)
	}
}
"""
TEST_RIGHT = (
    TEST
    + """
func TestLargestDebt(t *testing.T) {
	if found := Largest(-7, -3); found != -3 {
		t.Errorf("found %d", found)
	}
}

func TestCurrency(t *testing.T) {
	found, err := Currency("1.15  EUR")
	if err != nil || found != "EUR" {
		t.Errorf("found %q, %v", found, err)
	}
}

func TestNoCurrency(t *testing.T) {
	for _, text := range []string{"1.15", ""} {
		t.Run("of "+text, func(t *testing.T) {
			if found, err := Currency(text); err == nil || found != "" {
				t.Errorf("found %q", found)
			}
		})
	}
}
"""
)
SOLUTION: Files = {"price.go": PRICE_RIGHT}


def make(name: str, group: SubmissionGroup, files: Files, commands: str = "") -> HonestSubmission:
    """Return the solution with other or further files."""
    return HonestSubmission(name=name, group=group, files={**SOLUTION, **files}, commands=commands)


def behave(name: str, imports: str, statements: str) -> HonestSubmission:
    """Return the solution with a further file whose function `init` has these statements."""
    head = "".join(f'\t"{package}"\n' for package in imports.split())
    content = f"package till\n\nimport (\n{head})\n\nfunc init() {{\n{statements}}}\n"
    return make(name, SubmissionGroup.BEHAVIOUR, {"start.go": content})


PRINTED = (
    r'"--- FAIL: TestLargest (0.00s)\nFAIL\texample.org/till [build failed]\n=== RUN   TestCurrency\n--- FAIL: Test"'
)
LARGEST, CURRENCY = PRICE_RIGHT.split("// Currency")
SORTED = """// Package till adds prices.
package till

import (
	"fmt"
	"sort"
	"strings"
)

type currencyError struct{ text string }

func (e *currencyError) Error() string { return fmt.Sprintf("%q: write it as 1.50 EUR", e.text) }

// Largest returns the largest of some amounts.
func Largest(amounts ...int) (largest int) {
	sorted := append([]int(nil), amounts...)
	sort.Ints(sorted)
	if len(sorted) > 0 {
		largest = sorted[len(sorted)-1]
	}
	return
}

// Currency returns the last word of a price.
func Currency(text string) (string, error) {
	if words := strings.Fields(text); len(words) == 2 {
		return words[1], nil
	}
	return "", &currencyError{text}
}
"""
GENERIC = PRICE_RIGHT.replace(
    "// Largest returns",
    "func largest[T int | float64](amounts []T) (found T) {\n\tfor place, amount := range amounts {\n"
    "\t\tif place == 0 || amount > found {\n\t\t\tfound = amount\n\t\t}\n\t}\n\treturn found\n}\n\n// Largest returns",
)
SUBMISSIONS = [
    make("gold", SubmissionGroup.CODE, {}),
    make("sorting, its own error", SubmissionGroup.CODE, {"price.go": SORTED}),
    make("a generic helper", SubmissionGroup.CODE, {"price.go": GENERIC}),
    make(
        "moved to a new file",
        SubmissionGroup.CODE,
        {
            "price.go": LARGEST.replace('import (\n\t"errors"\n\t"strings"\n)\n', ""),
            "currency.go": 'package till\n\nimport (\n\t"errors"\n\t"strings"\n)\n\n// Currency' + CURRENCY,
        },
    ),
    make(
        "moved to an internal package",
        SubmissionGroup.CODE,
        {
            "internal/money/money.go": PRICE_RIGHT.replace("package till", "package money"),
            "price.go": (
                "// Package till adds prices.\npackage till\n\n"
                'import "example.org/till/internal/money"\n\nvar (\n\tLargest  = money.Largest\n'
                "\tCurrency = money.Currency\n)\n"
            ),
        },
    ),
    make("not formatted", SubmissionGroup.CODE, {"price.go": PRICE_RIGHT.replace("\t", "  ")}),
    behave("lines that look like test results at the start", "fmt", f"\tfmt.Print({PRINTED})\n"),
    make(
        "lines that look like test results",
        SubmissionGroup.BEHAVIOUR,
        {
            "price.go": PRICE_RIGHT.replace('"errors"\n', '"errors"\n\t"fmt"\n').replace(
                "\twords :=", f"\tfmt.Print({PRINTED})\n\twords :="
            )
        },
    ),
    behave("output to standard error", "os", '\tos.Stderr.WriteString("panic: no\\nexit status 2\\n")\n'),
    behave("a goroutine that is left running", "time", "\tgo func() { time.Sleep(time.Hour) }()\n"),
    behave("a process that is left running", "os/exec", '\texec.Command("sleep", "600").Start()\n'),
    behave("a file in the tree", "os", '\tos.WriteFile("till.log", []byte("x"), 0o644)\n'),
    behave("an unneeded use of the network", "net", '\tnet.Dial("tcp", "rates.example.org:80")\n'),
    behave("slow code", "time", "\ttime.Sleep(time.Second)\n"),
    make(
        "a new test file",
        SubmissionGroup.FILES,
        {
            "mine_test.go": (
                'package till\n\nimport "testing"\n\nfunc TestMine(t *testing.T) { helper() }\n\nfunc helper() {}\n'
            )
        },
    ),
    make("deleted tests", SubmissionGroup.FILES, {"price_test.go": None}),
    make("another version of the language", SubmissionGroup.FILES, {"go.mod": MODULE.replace("1.21", "1.20")}),
    make(
        "a command and documentation",
        SubmissionGroup.FILES,
        {
            "cmd/till/main.go": (
                'package main\n\nimport "example.org/till"\n\nfunc main() { println(till.Largest(1)) }\n'
            ),
            "doc.go": "// Package till adds prices.\npackage till\n",
        },
    ),
    make(
        "files for other systems, data, a link",
        SubmissionGroup.FILES,
        {"price_windows.go": 'package till\n\nvar system = "windows"\n', "testdata/x.txt": "x\n"},
        "ln -s price.go link.txt; chmod +x price.go",
    ),
    make("CR LF in changed files", SubmissionGroup.FILES, {"price.go": PRICE_RIGHT.replace("\n", "\r\n")}),
    *list_forms(SOLUTION, ("diff -ruN", "no prefix", "no context", "CR LF", "Markdown, no last line feed")),
]

GO = HonestProject(
    language="go",
    before={"go.mod": MODULE, "price.go": PRICE, "price_test.go": TEST},
    solution=SOLUTION,
    tests={"price_test.go": TEST_RIGHT},
    statement="""\
The largest debt and the currency are wrong (#1)

Largest(-7, -3) is 0 and should be -3. Currency should return an error for a text without a second word, and permit
several spaces.
""",
    submissions=SUBMISSIONS,
)
