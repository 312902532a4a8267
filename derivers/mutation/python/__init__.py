"""Mutants and rewrites of Python. The two tables are the policy; each rule is a function beside its kin."""

from __future__ import annotations

from derivers.mutation.change import Operator
from derivers.mutation.python import expressions, rewrites, statements
from derivers.mutation.python.source import Rule, Source, UnreadableError, parser

MUTANTS: tuple[Rule, ...] = (
    Operator("comparison-boundary", expressions.comparison_boundary),
    Operator("comparison-flipped", expressions.comparison_flipped),
    Operator("boolean-operator", expressions.boolean_operator),
    Operator("condition-negated", expressions.condition_negated),
    Operator("operand-dropped", expressions.operand_dropped),
    Operator("arithmetic", expressions.arithmetic),
    Operator("sign-dropped", expressions.sign_dropped),
    Operator("constant", expressions.constant),
    Operator("string", expressions.string),
    Operator("index", expressions.index),
    Operator("call-swapped", expressions.call_swapped),
    Operator("argument-dropped", expressions.argument_dropped),
    Operator("branch-of-choice", expressions.branch_of_choice),
    Operator("return-value", statements.return_value),
    Operator("statement-removed", statements.statement_removed),
    Operator("guard-removed", statements.guard_removed),
    Operator("branch-removed", statements.branch_removed),
    Operator("default-argument", statements.default_argument),
    Operator("handler-emptied", statements.handler_emptied),
    Operator("loop-control", statements.loop_control),
    Operator("loop-ended", statements.loop_ended),
    Operator("wrong-variable", statements.wrong_variable),
    Operator("arguments-swapped", statements.arguments_swapped),
)

VARIANTS: tuple[Rule, ...] = (
    Operator("local-renamed", rewrites.local_renamed),
    Operator("comparison-commuted", rewrites.comparison_commuted),
    Operator("branches-swapped", rewrites.branches_swapped),
    Operator("doubly-negated", rewrites.doubly_negated),
    Operator("result-named", rewrites.result_named),
    Operator("sum-written-out", rewrites.sum_written_out),
    Operator("step-added", rewrites.step_added),
    Operator("remark-added", rewrites.remark_added),
    Operator("blank-line-added", rewrites.blank_line_added),
)

__all__ = ["MUTANTS", "VARIANTS", "Rule", "Source", "UnreadableError", "parser"]
