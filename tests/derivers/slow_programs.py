"""Small projects in compiled languages with a slow function, a change that makes it faster, and submissions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True)
class SlowProject:
    """A project and the contents of its source file in several trees."""

    language: str
    files: Mapping[str, str]
    """All files of the base tree but the source file."""
    source: str
    """Path of the source file."""
    slow: str
    fast: str
    wrong: str
    """Fast, but the tests of the workload fail."""
    shrinking: str
    """Fast because the tests do less: they read a limit from the program."""
    workload: tuple[str, ...]
    """Ids of tests that the fast source makes faster."""


GO_SLOW = """// Package rows removes repetitions.
package rows

// Most is the most rows that are used at once.
const Most = 3000

// Unique returns the rows in their order, each once.
func Unique(rows []int) []int {
	found := []int{}
	for _, row := range rows {
		known := false
		for _, other := range found {
			known = known || other == row
		}
		if !known {
			found = append(found, row)
		}
	}
	return found
}
"""
GO_BODY = GO_SLOW[GO_SLOW.index("\tfor _, row") : GO_SLOW.index("\treturn found")]
GO_FAST = GO_SLOW.replace(
    GO_BODY,
    "\tknown := map[int]bool{}\n\tfor _, row := range rows {\n\t\tif !known[row] {\n\t\t\tknown[row] = true\n"
    "\t\t\tfound = append(found, row)\n\t\t}\n\t}\n",
)
GO_TESTS = """package rows

import "testing"

func makeRows(number int) []int {
	rows := make([]int, 0, 2*number)
	for row := 0; row < 2*number; row++ {
		rows = append(rows, row%number)
	}
	return rows
}

func TestOnce(t *testing.T) {
	if len(Unique([]int{1, 2, 1})) != 2 {
		t.Fatal("repeated")
	}
}

func TestMany(t *testing.T) {
	if found := Unique(makeRows(Most)); len(found) != Most || found[1] != 1 {
		t.Fatal("repeated", len(found))
	}
}

func BenchmarkUnique(b *testing.B) {
	rows := makeRows(Most)
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		if len(Unique(rows)) != Most {
			b.Fatal("repeated")
		}
	}
}
"""
GO = SlowProject(
    language="go",
    files={"go.mod": "module example.org/rows\n\ngo 1.21\n", "rows_test.go": GO_TESTS},
    source="rows.go",
    slow=GO_SLOW,
    fast=GO_FAST,
    wrong=GO_SLOW.replace(GO_BODY, "\tfound = rows\n"),
    shrinking=GO_SLOW.replace("Most = 3000", "Most = 300"),
    workload=("rows_test.go::BenchmarkUnique", "rows_test.go::TestMany"),
)

RUST_SLOW = """//! Removes repetitions.

/// The most rows that are used at once.
pub const MOST: usize = 3000;

/// Returns the rows in their order, each once.
pub fn unique(rows: &[usize]) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for row in rows {
        if !found.iter().any(|other| other == row) {
            found.push(*row);
        }
    }
    found
}
"""
RUST_BODY = RUST_SLOW[RUST_SLOW.index("    for row in rows") : RUST_SLOW.index("    found\n")]
RUST_TESTS = """use rows::{unique, MOST};

fn make_rows(number: usize) -> Vec<usize> {
    let mut rows = vec![0; 2 * number];
    for (place, row) in rows.iter_mut().enumerate() {
        *row = place % number;
    }
    rows
}

#[test]
fn once() {
    assert_eq!(unique(&[1, 2, 1]), vec![1, 2]);
}

#[test]
fn many() {
    let rows = make_rows(MOST);
    for _ in 0..5 {
        assert_eq!(unique(&rows).len(), MOST);
    }
}
"""
RUST = SlowProject(
    language="rust",
    files={
        "Cargo.toml": '[package]\nname = "rows"\nversion = "0.1.0"\nedition = "2021"\n',
        "tests/rows.rs": RUST_TESTS,
    },
    source="src/lib.rs",
    slow=RUST_SLOW,
    fast=RUST_SLOW.replace(
        RUST_BODY,
        "    let mut known = std::collections::HashSet::new();\n    for row in rows {\n"
        "        if known.insert(*row) {\n            found.push(*row);\n        }\n    }\n",
    ),
    wrong=RUST_SLOW.replace(RUST_BODY, "    found.extend(rows);\n"),
    shrinking=RUST_SLOW.replace("= 3000", "= 300"),
    workload=("tests/rows.rs::many",),
)

RUST_BENCHMARKS = """use criterion::{criterion_group, criterion_main, Criterion};
use rows::{unique, MOST};

fn bench_unique(c: &mut Criterion) {
    let rows: Vec<usize> = (0..2 * MOST).map(|row| row % MOST).collect();
    let mut group = c.benchmark_group("rows");
    group.bench_function("unique", |b| b.iter(|| assert_eq!(unique(&rows).len(), MOST)));
    group.finish();
}

criterion_group!(benches, bench_unique);
criterion_main!(benches);
"""
CRITERION = replace(
    RUST,
    files={
        "Cargo.toml": RUST.files["Cargo.toml"]
        + '\n[dev-dependencies]\ncriterion = { version = "0.5", default-features = false, features = '
        + '["cargo_bench_support"] }\n\n[[bench]]\nname = "rows"\nharness = false\n',
        "tests/rows.rs": RUST_TESTS[: RUST_TESTS.index("\n#[test]\nfn many")],
        "benches/rows.rs": RUST_BENCHMARKS,
    },
    workload=("benches/rows.rs::rows/unique",),
)

JAVA_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>rows</groupId>
  <artifactId>rows</artifactId>
  <version>1.0</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source>
    <maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>org.junit.jupiter</groupId>
      <artifactId>junit-jupiter</artifactId>
      <version>5.10.2</version>
      <scope>test</scope>
    </dependency>
  </dependencies>
  <build>
    <pluginManagement>
      <plugins>
        <plugin>
          <artifactId>maven-surefire-plugin</artifactId>
          <version>3.2.5</version>
        </plugin>
      </plugins>
    </pluginManagement>
  </build>
</project>
"""
JAVA_SLOW = """package rows;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;

/** Removes repetitions. */
public final class Rows {
    /** The most rows that are used at once. */
    public static final int MOST = Integer.parseInt("8000");

    private Rows() {
    }

    /** Returns the rows in their order, each once. */
    public static List<Integer> unique(List<Integer> rows) {
        List<Integer> found = new ArrayList<>();
        for (Integer row : rows) {
            if (!found.contains(row)) {
                found.add(row);
            }
        }
        return found;
    }
}
"""
JAVA_BODY = JAVA_SLOW[JAVA_SLOW.index("        List<Integer> found") : JAVA_SLOW.index("    }\n}\n")]
JAVA_TESTS = """package rows;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class RowsTest {
    private List<Integer> rows;

    @BeforeEach
    void makeRows() {
        rows = new ArrayList<>();
        for (int row = 0; row < 2 * Rows.MOST; row++) {
            rows.add(row % Rows.MOST);
        }
    }

    @Test
    void once() {
        assertEquals(List.of(1, 2), Rows.unique(List.of(1, 2, 1)));
    }

    @Test
    void many() {
        assertEquals(Rows.MOST, Rows.unique(rows).size());
    }
}
"""
JAVA = SlowProject(
    language="java",
    files={"pom.xml": JAVA_POM, "src/test/java/rows/RowsTest.java": JAVA_TESTS},
    source="src/main/java/rows/Rows.java",
    slow=JAVA_SLOW,
    fast=JAVA_SLOW.replace(JAVA_BODY, "        return new ArrayList<>(new LinkedHashSet<>(rows));\n"),
    wrong=JAVA_SLOW.replace(JAVA_BODY, "        return rows;\n"),
    shrinking=JAVA_SLOW.replace('"8000"', '"800"'),
    workload=("src/test/java/rows/RowsTest.java::many",),
)
