"""GitHub's GraphQL API: queries executed by graphql-core against the schema that GitHub publishes.

The schema itself rejects unknown fields, wrong arguments and null where it has none. Every answer has status 200,
errors included, like GitHub's.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLOutputType,
    GraphQLResolveInfo,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    build_client_schema,
    execute_sync,
    get_named_type,
    get_operation_ast,
    parse,
    validate,
)

from tests.github import cost
from tests.github.answers import ApiRequest, ApiResponse, make_error_response, make_json_response
from tests.github.fields import QueryContext
from tests.github.git_reader import GitReader
from tests.github.packages import GRAPHQL_SCHEMA, fetch_package
from tests.github.pages import Connection, GraphQLRequestError, check_bounds
from tests.github.rate_limits import RateLimitLedger
from tests.github.repository_fields import FIELDS, format_iso, get_type_name
from tests.github.world import World


@lru_cache(maxsize=1)
def schema() -> GraphQLSchema:
    """Return GitHub's published schema (half a second to build, once per process)."""
    description = json.loads(fetch_package(GRAPHQL_SCHEMA).read_bytes())
    return build_client_schema(description, assume_valid=True)


@lru_cache(maxsize=64)
def read_query(text: str) -> tuple[DocumentNode | None, list[dict[str, Any]]]:
    """Parse and validate a query; return it, or GitHub's errors for it."""
    try:
        document = parse(text)
    except GraphQLError as error:
        return None, [_as_error(error)]
    wrong = validate(schema(), document)
    return (None, [_as_error(error) for error in wrong]) if wrong else (document, [])


def _as_error(error: GraphQLError) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if isinstance(error.original_error, GraphQLRequestError):
        result["type"] = error.original_error.kind
    if error.path:
        result["path"] = list(error.path)
    if error.locations:
        result["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    return result | {"message": error.message}


@lru_cache(maxsize=1024)
def _is_connection(kind: GraphQLOutputType) -> bool:
    return get_named_type(kind).name.endswith("Connection")


def _requests_nodes(info: GraphQLResolveInfo) -> bool:
    """Return whether more than the total and the page info of a connection is requested."""
    for node in info.field_nodes:
        for inner in node.selection_set.selections if node.selection_set else ():
            name = getattr(getattr(inner, "name", None), "value", "")
            if name in ("nodes", "edges") or isinstance(inner, InlineFragmentNode):
                return True
    return False


def _resolve_connection_field(page: Connection, name: str) -> Any:
    match name:
        case "nodes":
            return page.nodes
        case "edges":
            return list(zip(page.cursors, page.nodes, strict=True))
        case "totalCount" | "repositoryCount":
            return page.total
        case "pageInfo":
            ends = (page.cursors[0], page.cursors[-1]) if page.cursors else (None, None)
            return {
                "startCursor": ends[0],
                "endCursor": ends[1],
                "hasNextPage": page.more_after,
                "hasPreviousPage": page.more_before,
            }
    raise GraphQLRequestError("UNANSWERED", f"the emulator does not know {name} of a connection")


def _resolve(source: Any, info: GraphQLResolveInfo, **args: Any) -> Any:
    name = info.field_name
    if isinstance(source, Connection):
        return _resolve_connection_field(source, name)
    if isinstance(source, dict):
        return source[name]
    owner = info.parent_type.name
    if owner.endswith("Edge"):
        return _resolve_edge_field(owner, name, source)
    try:
        known = FIELDS[owner][name]
    except KeyError:
        raise GraphQLRequestError("UNANSWERED", f"the emulator does not know {owner}.{name}") from None
    if isinstance(known, str):
        return getattr(source, known)
    look: QueryContext = info.context
    wants_nodes = False
    if _is_connection(info.return_type):
        wants_nodes = _requests_nodes(info)
        check_bounds(name, args, wants_nodes=wants_nodes)
    return known(
        source, QueryContext(look.world, look.ask, look.books, look.readers, look.rate_limit, args, wants_nodes)
    )


def _resolve_edge_field(owner: str, name: str, source: Any) -> Any:
    where, node = source
    if name in ("cursor", "node"):
        return where if name == "cursor" else node
    if owner == "LanguageEdge" and name == "size":
        return node[1]
    raise GraphQLRequestError("UNANSWERED", f"the emulator does not know {owner}.{name}")


class GraphQLEndpoint:
    """The endpoint: executes, charges and answers queries."""

    def __init__(self, world: World, books: RateLimitLedger) -> None:
        self.world = world
        self.books = books

    def compute_price(self, ask: ApiRequest) -> cost.QueryCost:
        """Return the cost of a request; 1 point for an invalid query."""
        try:
            asked = json.loads(ask.body)
            document, _ = read_query(asked["query"])
            operation = get_operation_ast(document, asked.get("operationName")) if document else None
            if document and operation:
                return cost.measure_query_cost(schema(), document, operation, asked.get("variables") or {})
        except (ValueError, KeyError, TypeError):
            pass
        return cost.QueryCost()

    def answer(self, ask: ApiRequest, price: cost.QueryCost) -> ApiResponse:
        """Return the answer to one request, whose points are already charged."""
        try:
            asked = json.loads(ask.body)
            query, variables = asked["query"], asked.get("variables") or {}
        except (ValueError, KeyError, TypeError):
            return make_error_response(400, "Problems parsing JSON")
        document, errors = read_query(query)
        operation = get_operation_ast(document, asked.get("operationName")) if document else None
        if document and not operation:
            errors = [{"message": "An operation name is required"}]
        elif price.nodes > cost.LARGEST_QUERY:
            errors = [_make_node_limit_error(price.nodes)]
        if errors or not document or not isinstance(operation, OperationDefinitionNode):
            return make_json_response(200, {"errors": errors})
        done = self._execute(ask, document, variables, asked.get("operationName"), price)
        result: dict[str, Any] = {"data": done.data}
        for error in done.errors or ():
            if not isinstance(error.original_error, GraphQLRequestError) or error.original_error.kind == "UNANSWERED":
                self.books.add_violation(ask.number, ask.token, "unanswered", str(error))
            result.setdefault("errors", []).append(_as_error(error))
        return make_json_response(200, result)

    def _execute(
        self,
        ask: ApiRequest,
        document: DocumentNode,
        variables: dict[str, Any],
        name: str | None,
        price: cost.QueryCost,
    ) -> ExecutionResult:
        account = self.books.account(ask.token)
        limits = {
            "cost": price.points,
            "limit": account.limit("graphql"),
            "remaining": account.remaining("graphql"),
            "used": account.used.get("graphql", 0),
            "nodeCount": price.nodes,
            "resetAt": format_iso(account.reset.get("graphql", 0)),
        }
        look = QueryContext(self.world, ask, self.books, lambda r: GitReader(r.git_dir), limits, {})
        return execute_sync(
            schema(),
            document,
            root_value=self.world,
            context_value=look,
            variable_values=variables,
            operation_name=name,
            field_resolver=_resolve,
            type_resolver=lambda value, *_: get_type_name(value),
        )


def _make_node_limit_error(nodes: int) -> dict[str, Any]:
    text = f"This query requests up to {nodes:,} possible nodes which exceeds the maximum limit of 500,000."
    return {"type": "MAX_NODE_LIMIT_EXCEEDED", "message": text}
