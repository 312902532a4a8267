"""Mutants and rewrites of all languages that tree-sitter reads. The two tables are the policy."""

from __future__ import annotations

from derivers.mutation.change import Operator
from derivers.mutation.trees import mutants, rewrites
from derivers.mutation.trees.grammars import GRAMMARS, Grammar, grammar_of
from derivers.mutation.trees.source import Rule, Source

MUTANTS: tuple[Rule, ...] = (
    Operator("comparison-boundary", mutants.comparison_boundary),
    Operator("comparison-flipped", mutants.comparison_flipped),
    Operator("boolean-operator", mutants.boolean_operator),
    Operator("condition-negated", mutants.condition_negated),
    Operator("operand-dropped", mutants.operand_dropped),
    Operator("arithmetic", mutants.arithmetic),
    Operator("constant", mutants.constant),
    Operator("string", mutants.string),
    Operator("index", mutants.index),
    Operator("default-argument", mutants.default_argument),
    Operator("call-swapped", mutants.call_swapped),
    Operator("return-value", mutants.return_value),
    Operator("statement-removed", mutants.statement_removed),
    Operator("guard-removed", mutants.guard_removed),
    Operator("branch-removed", mutants.branch_removed),
    Operator("handler-emptied", mutants.handler_emptied),
    Operator("loop-control", mutants.loop_control),
    Operator("wrong-variable", mutants.wrong_variable),
    Operator("arguments-swapped", mutants.arguments_swapped),
)

VARIANTS: tuple[Rule, ...] = (
    Operator("local-renamed", rewrites.local_renamed),
    Operator("comparison-commuted", rewrites.comparison_commuted),
    Operator("branches-swapped", rewrites.branches_swapped),
    Operator("doubly-negated", rewrites.doubly_negated),
    Operator("result-named", rewrites.result_named),
    Operator("step-added", rewrites.step_added),
    Operator("remark-added", rewrites.remark_added),
    Operator("blank-line-added", rewrites.blank_line_added),
)

__all__ = ["GRAMMARS", "MUTANTS", "VARIANTS", "Grammar", "Rule", "Source", "grammar_of"]
