"""Operators of every language: the two tables are the complete list."""

from __future__ import annotations

from mutation.mutation import MutationOperator
from mutation.operators import calls, control_flow, expressions, literals, order, rewrites, statements
from mutation.source_file import SyntaxOperator

MUTANT_OPERATORS: tuple[SyntaxOperator, ...] = (
    MutationOperator("comparison-boundary", expressions.shift_boundary),
    MutationOperator("comparison-flipped", expressions.flip_comparison),
    MutationOperator("boolean-operator", expressions.swap_junction),
    MutationOperator("condition-negated", expressions.negate_condition),
    MutationOperator("operand-dropped", expressions.drop_operand),
    MutationOperator("arithmetic", expressions.swap_arithmetic),
    MutationOperator("sign-dropped", expressions.drop_sign),
    MutationOperator("branch-of-choice", expressions.choose_first_branch),
    MutationOperator("constant", literals.change_constant),
    MutationOperator("string", literals.change_string),
    MutationOperator("index", literals.shift_index),
    MutationOperator("default-argument", literals.change_default),
    MutationOperator("call-swapped", calls.swap_function),
    MutationOperator("argument-dropped", calls.drop_argument),
    MutationOperator("arguments-swapped", calls.swap_arguments),
    MutationOperator("wrong-variable", calls.confuse_parameters),
    MutationOperator("return-value", statements.clear_return_value),
    MutationOperator("statement-removed", statements.remove_statement),
    MutationOperator("handler-emptied", statements.empty_handler),
    MutationOperator("guard-removed", control_flow.remove_guard),
    MutationOperator("branch-removed", control_flow.remove_branch),
    MutationOperator("loop-control", control_flow.swap_loop_control),
    MutationOperator("loop-ended", control_flow.end_loop),
    MutationOperator("branch-bodies-swapped", order.swap_branch_bodies),
    MutationOperator("conditional-removed", order.remove_conditional),
    MutationOperator("loop-removed", order.remove_loop),
    MutationOperator("assignment-removed", order.remove_assignment),
    MutationOperator("statements-shuffled", order.shuffle_statements),
    MutationOperator("operands-swapped", order.swap_operands),
    MutationOperator("length-shortened", order.shorten_length),
)

VARIANT_OPERATORS: tuple[SyntaxOperator, ...] = (
    MutationOperator("local-renamed", rewrites.rename_local),
    MutationOperator("comparison-commuted", rewrites.commute_comparison),
    MutationOperator("branches-swapped", rewrites.swap_branches),
    MutationOperator("doubly-negated", rewrites.negate_twice),
    MutationOperator("result-named", rewrites.name_result),
    MutationOperator("sum-written-out", rewrites.expand_assignment),
    MutationOperator("step-added", rewrites.add_no_op),
    MutationOperator("remark-added", rewrites.add_comment),
    MutationOperator("blank-line-added", rewrites.add_blank_line),
)

__all__ = ["MUTANT_OPERATORS", "VARIANT_OPERATORS"]
