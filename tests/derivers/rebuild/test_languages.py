"""Code removed from projects in several languages, in real environments: rewards of gold, nothing and wrong bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from backends.overlay import open_task_tree
from builders.build import build
from mergemill.execution.services import LazySourceImages
from mergemill.pipeline.kinds import derive
from mutation import build_patch
from taskdb.records import Environment, FailureKind, Kind, Stage, Task
from taskdb.records.lineage import Lineage
from tests.containers import make_services
from tests.helpers import TinyRepo
from tests.languages.examples import LanguageExample, list_examples
from tests.languages.test_examples import build_candidate
from verifiers.grade import grade


@dataclass(frozen=True)
class AddedCode:
    """A function that is added to an example with its tests, and bodies that are wrong."""

    path: str
    source: str
    tests: Mapping[str, str]
    stub: str
    """The line that the agent's tree has in place of the body."""
    wrong: tuple[str, str, str]
    """Bodies that return nothing or zero, the first argument, and a constant that a test expects."""


PYTHON = AddedCode(
    path="tally/ranges.py",
    source='''"""Ranges."""


def clamp(value, low, high):
    """The value, or the limit that it passes."""
    if value < low:
        return low
    if value > high:
        return high
    return value
''',
    tests={
        "tests/test_ranges.py": """from tally.ranges import clamp


def test_low():
    assert clamp(1, 3, 7) == 3


def test_high():
    assert clamp(9, 3, 7) == 7
"""
    },
    stub="raise NotImplementedError",
    wrong=("return None", "return value", "return 3"),
)
GO = AddedCode(
    path="ledger/clamp.go",
    source="""package ledger

import "strings"

// Repeat is the word, as often as there are amounts, with commas between.
func Repeat(word string, amounts ...int) string {
	words := []string{}
	for range amounts {
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}
""",
    tests={
        "ledger/clamp_test.go": """package ledger

import "testing"

func TestRepeat(t *testing.T) {
	if got := Repeat("a", 1, 2); got != "a, a" {
		t.Errorf("got %q", got)
	}
}

func TestRepeatMore(t *testing.T) {
	if got := Repeat("b", 1, 2, 3); got != "b, b, b" {
		t.Errorf("got %q", got)
	}
}
"""
    },
    stub="return *new(string)",
    wrong=('return ""', "return word", 'return "a, a"'),
)
JAVASCRIPT = AddedCode(
    path="clamp.js",
    source="""'use strict';

/** The value, or the limit that it passes. */
exports.clamp = (value, low, high) => {
  if (value < low) return low;
  if (value > high) return high;
  return value;
};
""",
    tests={
        "test/clamp.test.js": """const { clamp } = require('../clamp');

describe('clamp', function () {
  it('has a lower limit', function () {
    assert.strictEqual(clamp(1, 3, 7), 3);
  });
  it('has an upper limit', function () {
    assert.strictEqual(clamp(9, 3, 7), 7);
  });
});
"""
    },
    stub='throw new Error("not implemented");',
    wrong=("return null;", "return value;", "return 3;"),
)
RUST = AddedCode(
    path="shelf/src/lib.rs",
    source="",
    tests={
        "shelf/tests/clamps.rs": """use shelf::clamp;

#[test]
fn low() {
    assert_eq!(clamp(1, 3, 7), 3);
}

#[test]
fn high() {
    assert_eq!(clamp(9, 3, 7), 7);
}
"""
    },
    stub='unimplemented!("not implemented")',
    wrong=("0", "value", "3"),
)
CLAMP_RUST = """
/// The value, or the limit that it passes.
pub fn clamp(value: i32, low: i32, high: i32) -> i32 {
    if value < low {
        return low;
    }
    if value > high {
        return high;
    }
    value
}

#[cfg(test)]
"""
JAVA = AddedCode(
    path="money/src/main/java/shop/Limits.java",
    source="""package shop;

/** Limits of numbers. */
public final class Limits {
    private Limits() {
    }

    /** The value, or the limit that it passes. */
    public static int clamp(int value, int low, int high) {
        if (value < low) {
            return low;
        }
        if (value > high) {
            return high;
        }
        return value;
    }
}
""",
    tests={
        "lists/src/test/java/shop/LimitsTest.java": """package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class LimitsTest {
    @Test
    void low() {
        assertEquals(3, Limits.clamp(1, 3, 7));
    }

    @Test
    void high() {
        assertEquals(7, Limits.clamp(9, 3, 7));
    }
}
"""
    },
    stub='throw new UnsupportedOperationException("not implemented");',
    wrong=("return 0;", "return value;", "return 3;"),
)
TYPESCRIPT = AddedCode(
    path="packages/clock/src/clamp.ts",
    source="""/** The value, or the limit that it passes. */
export function clamp(value: number, low: number, high: number): number {
  if (value < low) {
    return low;
  }
  if (value > high) {
    return high;
  }
  return value;
}
""",
    tests={
        "packages/clock/src/__tests__/clamp.spec.ts": """import { expect, it } from 'vitest';
import { clamp } from '../clamp';

it('has a lower limit', () => {
  expect(clamp(1, 3, 7)).toBe(3);
});

it('has an upper limit', () => {
  expect(clamp(9, 3, 7)).toBe(7);
});
"""
    },
    stub='throw new Error("not implemented");',
    wrong=("return undefined as any;", "return value;", "return 3;"),
)
RUBY = AddedCode(
    path="lib/shelf/limits.rb",
    source="""module Shelf
  # Limits of numbers.
  module Limits
    # The value, or the limit that it passes.
    def self.clamp(value, low, high)
      return low if value < low
      return high if value > high

      value
    end
  end
end
""",
    tests={
        "spec/limits_spec.rb": """require "shelf/limits"

RSpec.describe Shelf::Limits do
  it "has a lower limit" do
    expect(described_class.clamp(1, 3, 7)).to eq(3)
  end

  it "has an upper limit" do
    expect(described_class.clamp(9, 3, 7)).to eq(7)
  end
end
"""
    },
    stub='raise NotImplementedError, "not implemented"',
    wrong=("nil", "value", "3"),
)
PHP = AddedCode(
    path="src/Limits.php",
    source="""<?php

namespace Shop;

final class Limits
{
    /** The value, or the limit that it passes. */
    public static function clamp(int $value, int $low, int $high): int
    {
        if ($value < $low) {
            return $low;
        }
        if ($value > $high) {
            return $high;
        }
        return $value;
    }
}
""",
    tests={
        "tests/LimitsTest.php": """<?php

namespace Shop\\Tests;

use PHPUnit\\Framework\\TestCase;
use Shop\\Limits;

class LimitsTest extends TestCase
{
    public function testLow(): void
    {
        $this->assertSame(3, Limits::clamp(1, 3, 7));
    }

    public function testHigh(): void
    {
        $this->assertSame(7, Limits::clamp(9, 3, 7));
    }
}
"""
    },
    stub='throw new \\LogicException("not implemented");',
    wrong=("return 0;", "return $value;", "return 3;"),
)
CODE = {
    "python": PYTHON,
    "go": GO,
    "javascript": JAVASCRIPT,
    "rust": RUST,
    "java": JAVA,
    "typescript": TYPESCRIPT,
    "ruby": RUBY,
    "php": PHP,
}


class ExtendedExample(LanguageExample):
    """An example with a function more at the base commit."""

    def list_files(self, name: str) -> dict[str, str | None]:
        files: dict[str, str | None] = super().list_files(name)
        code = CODE[self.folder.name]
        if name != "before.txt":
            return files
        source = code.source or (files[code.path] or "").replace("\n#[cfg(test)]\n", CLAMP_RUST, 1)
        return {**files, code.path: source, **code.tests}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) for name in CODE])
@pytest.mark.timeout(1800)
def test_gold_earns_1_and_wrong_bodies_0(name: str, tmp_path: Path) -> None:
    services = make_services(tmp_path, test_timeout=900, memory_mb=3000, disk_mb=2000, pids=1024, budget_seconds=3000)
    services = replace(services, source_images=LazySourceImages(services))
    (example,) = (example for example in list_examples() if example.folder.name == name)
    candidate = build_candidate(ExtendedExample(example.folder), TinyRepo(tmp_path / "repo"), services)
    environment = build(candidate, services)
    assert isinstance(environment, Environment), environment
    lineage = Lineage(
        candidate=candidate, environment=environment, kinds=(Kind.REBUILD,), rejected_by=Stage.VERIFY, wanted=4
    )
    made = derive(lineage, services)
    assert isinstance(made, list), made
    code, tasks = CODE[name], [task for task in made if isinstance(task, Task)]
    task = next(task for task in tasks if f"in `{code.path}`" in task.problem_statement)
    assert {kind for _, kind in task.FAIL_TO_PASS} <= {FailureKind.ASSERTION, FailureKind.ERROR}
    assert {test.partition("::")[0] for test, _ in task.FAIL_TO_PASS} == set(code.tests)
    assert grade(task, services, services.artifacts.get(task.gold_patch)).value == 1.0
    assert grade(task, services, b"").value == 0.0
    with open_task_tree(task, services) as (repository, commit):
        before = repository.read_file(commit, code.path) or b""
    assert before.count(code.stub.encode()) == 1
    for body in code.wrong:
        patch = build_patch(code.path, before, before.replace(code.stub.encode(), body.encode()))
        assert grade(task, services, patch).value == 0.0, body
