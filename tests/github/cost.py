"""Cost of a GraphQL query, by the formula of GitHub's page "Rate limits and query limits for the GraphQL API".

Points: one request for each connection and each of its parents, a parent connection counting with its `first` or
`last`; the sum divided by 100, rounded, at least 1. Nodes: all that the query could return; 500,000 at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLCompositeType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    get_named_type,
    is_composite_type,
    value_from_ast_untyped,
)

LARGEST_QUERY = 500_000


@dataclass(slots=True)
class QueryCost:
    requests: int = 0
    nodes: int = 0
    largest_page: int = 0  # of the outermost connections, for faults by page size

    @property
    def points(self) -> int:
        return max(1, (self.requests + 50) // 100)


class _CostVisitor:
    def __init__(self, schema: GraphQLSchema, document: DocumentNode, variables: Mapping[str, Any]) -> None:
        self.schema = schema
        self.variables = dict(variables)
        self.fragments = {d.name.value: d for d in document.definitions if isinstance(d, FragmentDefinitionNode)}
        self.cost = QueryCost()

    def get_argument(self, node: FieldNode, name: str) -> Any:
        argument = next((a for a in node.arguments or () if a.name.value == name), None)
        return value_from_ast_untyped(argument.value, self.variables) if argument else None

    def is_skipped(self, node: Any) -> bool:
        for directive in node.directives or ():
            condition = next((a.value for a in directive.arguments if a.name.value == "if"), None)
            truth = value_from_ast_untyped(condition, self.variables) if condition else None
            if (directive.name.value, truth) in (("skip", True), ("include", False)):
                return True
        return False

    def collect_fields(self, kind: GraphQLCompositeType, sets: SelectionSetNode) -> Iterator[tuple[Any, FieldNode]]:
        for node in sets.selections:
            if self.is_skipped(node):
                continue
            if isinstance(node, FieldNode):
                yield kind, node
            elif isinstance(node, InlineFragmentNode):
                inner = self.schema.get_type(node.type_condition.name.value) if node.type_condition else kind
                yield from self.collect_fields(inner, node.selection_set)  # type: ignore[arg-type]
            elif isinstance(node, FragmentSpreadNode):
                fragment = self.fragments[node.name.value]
                inner = self.schema.get_type(fragment.type_condition.name.value)
                yield from self.collect_fields(inner, fragment.selection_set)  # type: ignore[arg-type]

    def visit(self, kind: GraphQLCompositeType, sets: list[SelectionSetNode], parents: int, depth: int) -> None:
        """Merge fields of one response key: they cost as much as one field."""
        merged: dict[tuple[str, str], tuple[Any, FieldNode, list[SelectionSetNode]]] = {}
        for selection in sets:
            for owner, node in self.collect_fields(kind, selection):
                key = (owner.name, node.alias.value if node.alias else node.name.value)
                merged.setdefault(key, (owner, node, []))
                if node.selection_set:
                    merged[key][2].append(node.selection_set)
        for owner, node, inner in merged.values():
            definition = getattr(owner, "fields", {}).get(node.name.value)
            target = get_named_type(definition.type) if definition else None
            if not inner or not is_composite_type(target):
                continue
            times = parents
            if target.name.endswith("Connection"):
                size = self.get_argument(node, "first") or self.get_argument(node, "last") or 0
                self.cost.requests += parents
                self.cost.nodes += parents * size
                times *= size
                if depth == 0:
                    self.cost.largest_page = max(self.cost.largest_page, size)
            elif node.name.value == "nodes" and owner is self.schema.query_type:
                times *= len(self.get_argument(node, "ids") or ())
            self.visit(target, inner, times, depth + target.name.endswith("Connection"))


def measure_query_cost(
    schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode, variables: Mapping[str, Any]
) -> QueryCost:
    """Return the cost of a validated query; defaults of variables are included."""
    defaults = {
        v.variable.name.value: value_from_ast_untyped(v.default_value)
        for v in operation.variable_definitions or ()
        if v.default_value
    }
    work = _CostVisitor(schema, document, defaults | dict(variables))
    assert schema.query_type
    work.visit(schema.query_type, [operation.selection_set], 1, 0)
    return work.cost
