"""Honest submissions to a task in Rust."""

from __future__ import annotations

from benchmarks.fairness.forms import list_forms
from benchmarks.fairness.suite import Files, HonestProject, HonestSubmission, SubmissionGroup

MANIFEST = '[package]\nname = "till"\nversion = "0.1.0"\nedition = "2021"\n'
PRICE = """//! Adds prices.

/// Returns the largest of some amounts in cents, 0 of none.
pub fn largest(amounts: &[i64]) -> i64 {
    let mut largest = 0;
    for amount in amounts {
        if *amount > largest {
            largest = *amount;
        }
    }
    largest
}

/// Returns the second word of a price.
pub fn currency(text: &str) -> Option<String> {
    Some(text.split(' ').nth(1).unwrap().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_of_two() {
        assert_eq!(largest(&[3, 7]), 7);
    }
}
"""
SOURCE, OWN_TESTS = PRICE.split("#[cfg(test)]")
OWN_TESTS = "#[cfg(test)]" + OWN_TESTS
PRICE_RIGHT = PRICE.replace("let mut largest = 0", "let mut largest = amounts.first().copied().unwrap_or(0)").replace(
    "Some(text.split(' ').nth(1).unwrap().to_string())", "text.split_whitespace().nth(1).map(str::to_string)"
)
SOURCE_RIGHT = PRICE_RIGHT.partition("#[cfg(test)]")[0]
TEST = """use till::*;

#[test]
fn a_currency() {
    assert_eq!(currency("1.15 EUR").unwrap(), "EUR");
}
"""
TEST_RIGHT = (
    TEST
    + """
#[test]
fn the_largest_debt() {
    assert_eq!(largest(&[-7, -3]), -3);
}

#[test]
fn no_currency() {
    assert_eq!(currency("1.15"), None);
}

#[test]
fn a_wide_gap() {
    assert_eq!(currency("1.15  EUR").as_deref(), Some("EUR"));
}
"""
)
SOLUTION: Files = {"src/lib.rs": PRICE_RIGHT}


def make(name: str, group: SubmissionGroup, files: Files, commands: str = "") -> HonestSubmission:
    """Return the solution with other or further files."""
    return HonestSubmission(name=name, group=group, files={**SOLUTION, **files}, commands=commands)


def behave(name: str, statements: str) -> HonestSubmission:
    """Return the solution with statements at the beginning of `currency`."""
    changed = PRICE_RIGHT.replace("    text.split_whitespace()", f"{statements}    text.split_whitespace()")
    return make(name, SubmissionGroup.BEHAVIOUR, {"src/lib.rs": changed})


ITERATORS = (
    """//! Adds prices.

/// Returns the largest of some amounts.
pub fn largest(amounts: &[i64]) -> i64 {
    amounts.iter().copied().max().unwrap_or_default()
}

/// Returns the second word of a price.
pub fn currency(text: &str) -> Option<String> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [_, name] => Some(name.to_owned()),
        _ => None,
    }
}

"""
    + OWN_TESTS
)
GENERIC = PRICE_RIGHT.replace(
    "/// Returns the largest",
    "trait Greatest {\n    fn greatest(&self) -> Option<i64>;\n}\n\nimpl Greatest for [i64] {\n"
    "    fn greatest(&self) -> Option<i64> {\n        self.iter().max().copied()\n    }\n}\n\n/// Returns the largest",
).replace("amounts.first().copied()", "amounts.greatest()")
BUILD = 'fn main() {\n    println!("cargo:rustc-env=TILL=1");\n}\n'
SUBMISSIONS = [
    make("gold", SubmissionGroup.CODE, {}),
    make("iterators and patterns", SubmissionGroup.CODE, {"src/lib.rs": ITERATORS}),
    make("a trait", SubmissionGroup.CODE, {"src/lib.rs": GENERIC}),
    make(
        "moved to a new module",
        SubmissionGroup.CODE,
        {"src/money.rs": SOURCE_RIGHT, "src/lib.rs": "mod money;\npub use money::*;\n\n" + OWN_TESTS},
    ),
    make("not formatted", SubmissionGroup.CODE, {"src/lib.rs": PRICE_RIGHT.replace("    ", "\t")}),
    make(
        "code that the compiler warns of",
        SubmissionGroup.CODE,
        {"src/lib.rs": PRICE_RIGHT + "\nfn unused(x: i32) {\n    let y = 1;\n}\n"},
    ),
    make(
        "a build script",
        SubmissionGroup.CODE,
        {
            "build.rs": BUILD,
            "src/lib.rs": PRICE_RIGHT + '\n/// Set by the build.\npub const BUILT: &str = env!("TILL");\n',
        },
    ),
    behave(
        "lines that look like test results",
        (
            '    println!("test no_currency ... FAILED\\ntest result: FAILED. 0 passed; 3 failed");\n'
            '    eprintln!("error: test failed");\n'
        ),
    ),
    behave(
        "output without a line feed",
        '    use std::io::Write;\n    std::io::stdout().write_all(b"test a_currency ... FAILED").unwrap();\n',
    ),
    behave(
        "a thread that is left running",
        "    std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(600)));\n",
    ),
    behave("a process that is left running", '    let _ = std::process::Command::new("sleep").arg("600").spawn();\n'),
    behave(
        "a panic that is caught", '    let _ = std::panic::catch_unwind(|| panic!("test no_currency ... FAILED"));\n'
    ),
    behave("a file in the tree", '    let _ = std::fs::write("till.log", "x");\n'),
    behave("an unneeded use of the network", '    let _ = std::net::TcpStream::connect("rates.example.org:80");\n'),
    behave("slow code", "    std::thread::sleep(std::time::Duration::from_millis(700));\n"),
    make("a new test file", SubmissionGroup.FILES, {"tests/mine.rs": "#[test]\nfn mine() {}\n"}),
    make(
        "more tests in the module",
        SubmissionGroup.FILES,
        {"src/lib.rs": PRICE_RIGHT.replace("    #[test]\n", "    #[test]\n    fn mine() {}\n\n    #[test]\n", 1)},
    ),
    make("deleted tests", SubmissionGroup.FILES, {"tests/price.rs": None}),
    make(
        "a new version and feature",
        SubmissionGroup.FILES,
        {
            "Cargo.toml": MANIFEST.replace("0.1.0", "0.2.0")
            + "\n[features]\nloud = []\n\n[profile.dev]\ndebug = false\n"
        },
    ),
    make(
        "an example, a link and modes",
        SubmissionGroup.FILES,
        {"examples/till.rs": "fn main() {}\n", "rustfmt.toml": "max_width = 120\n"},
        "ln -s src/lib.rs price.rs; chmod +x src/lib.rs",
    ),
    make("CR LF in changed files", SubmissionGroup.FILES, {"src/lib.rs": PRICE_RIGHT.replace("\n", "\r\n")}),
    *list_forms(SOLUTION, ("diff -ruN", "no prefix", "no context", "CR LF", "Markdown, no last line feed")),
]

RUST = HonestProject(
    language="rust",
    before={"Cargo.toml": MANIFEST, ".gitignore": "target\n", "src/lib.rs": PRICE, "tests/price.rs": TEST},
    solution=SOLUTION,
    tests={"tests/price.rs": TEST_RIGHT},
    statement="""\
The largest debt and the currency are wrong (#1)

largest(&[-7, -3]) is 0 and should be -3. currency should return None for a text without a second word, and permit
several spaces.
""",
    submissions=SUBMISSIONS,
)
