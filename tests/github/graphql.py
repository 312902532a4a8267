"""GitHub's GraphQL API: queries executed by graphql-core against the schema that GitHub publishes.

So an unknown field, a wrong argument or a null where the schema has none is refused by the schema itself. Every
answer has status 200, errors included, as GitHub's have.
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
from tests.github.answers import Answer, Ask, as_json, message
from tests.github.budget import Books
from tests.github.fields import Look
from tests.github.git_reader import GitReader
from tests.github.packages import GRAPHQL_SCHEMA, fetch
from tests.github.pages import Connection, Refused, check_bounds
from tests.github.repository_fields import FIELDS, iso, kind_of
from tests.github.world import World


@lru_cache(maxsize=1)
def schema() -> GraphQLSchema:
    """GitHub's published schema (half a second to build, once per process)."""
    described = json.loads(fetch(GRAPHQL_SCHEMA).read_bytes())
    return build_client_schema(described, assume_valid=True)


@lru_cache(maxsize=64)
def read_query(text: str) -> tuple[DocumentNode | None, list[dict[str, Any]]]:
    """A query parsed and validated, or GitHub's errors for it."""
    try:
        document = parse(text)
    except GraphQLError as error:
        return None, [_as_error(error)]
    wrong = validate(schema(), document)
    return (None, [_as_error(error) for error in wrong]) if wrong else (document, [])


def _as_error(error: GraphQLError) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if isinstance(error.original_error, Refused):
        told["type"] = error.original_error.kind
    if error.path:
        told["path"] = list(error.path)
    if error.locations:
        told["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    return told | {"message": error.message}


@lru_cache(maxsize=1024)
def _is_connection(kind: GraphQLOutputType) -> bool:
    return get_named_type(kind).name.endswith("Connection")


def _wants_nodes(info: GraphQLResolveInfo) -> bool:
    """Whether a connection is asked for more than its total and its page's ends."""
    for node in info.field_nodes:
        for inner in node.selection_set.selections if node.selection_set else ():
            name = getattr(getattr(inner, "name", None), "value", "")
            if name in ("nodes", "edges") or isinstance(inner, InlineFragmentNode):
                return True
    return False


def _of_connection(page: Connection, name: str) -> Any:
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
                "startCursor": ends[0], "endCursor": ends[1], "hasNextPage": page.more_after,
                "hasPreviousPage": page.more_before,
            }  # fmt: skip
    raise Refused("UNANSWERED", f"the emulator does not know {name} of a connection")


def _resolve(source: Any, info: GraphQLResolveInfo, **args: Any) -> Any:
    name = info.field_name
    if isinstance(source, Connection):
        return _of_connection(source, name)
    if isinstance(source, dict):
        return source[name]
    owner = info.parent_type.name
    if owner.endswith("Edge"):
        return _of_edge(owner, name, source)
    try:
        known = FIELDS[owner][name]
    except KeyError:
        raise Refused("UNANSWERED", f"the emulator does not know {owner}.{name}") from None
    if isinstance(known, str):
        return getattr(source, known)
    look: Look = info.context
    wants_nodes = False
    if _is_connection(info.return_type):
        wants_nodes = _wants_nodes(info)
        check_bounds(name, args, wants_nodes=wants_nodes)
    return known(source, Look(look.world, look.ask, look.books, look.readers, look.rate_limit, args, wants_nodes))


def _of_edge(owner: str, name: str, source: Any) -> Any:
    where, node = source
    if name in ("cursor", "node"):
        return where if name == "cursor" else node
    if owner == "LanguageEdge" and name == "size":
        return node[1]
    raise Refused("UNANSWERED", f"the emulator does not know {owner}.{name}")


class GraphQL:
    """The endpoint. `answer` executes, charges and answers one query."""

    def __init__(self, world: World, books: Books) -> None:
        self.world = world
        self.books = books

    def price(self, ask: Ask) -> cost.Cost:
        """What a request would cost; 1 point if it is no valid query."""
        try:
            asked = json.loads(ask.body)
            document, _ = read_query(asked["query"])
            operation = get_operation_ast(document, asked.get("operationName")) if document else None
            if document and operation:
                return cost.measure(schema(), document, operation, asked.get("variables") or {})
        except (ValueError, KeyError, TypeError):
            pass
        return cost.Cost()

    def answer(self, ask: Ask, price: cost.Cost) -> Answer:
        """The answer to one request, whose points are charged already."""
        try:
            asked = json.loads(ask.body)
            query, variables = asked["query"], asked.get("variables") or {}
        except (ValueError, KeyError, TypeError):
            return message(400, "Problems parsing JSON")
        document, errors = read_query(query)
        operation = get_operation_ast(document, asked.get("operationName")) if document else None
        if document and not operation:
            errors = [{"message": "An operation name is required"}]
        elif price.nodes > cost.LARGEST_QUERY:
            errors = [_too_many(price.nodes)]
        if errors or not document or not isinstance(operation, OperationDefinitionNode):
            return as_json(200, {"errors": errors})
        done = self._execute(ask, document, variables, asked.get("operationName"), price)
        told: dict[str, Any] = {"data": done.data}
        for error in done.errors or ():
            if not isinstance(error.original_error, Refused) or error.original_error.kind == "UNANSWERED":
                self.books.blame(ask.number, ask.token, "unanswered", str(error))
            told.setdefault("errors", []).append(_as_error(error))
        return as_json(200, told)

    def _execute(
        self, ask: Ask, document: DocumentNode, variables: dict[str, Any], name: str | None, price: cost.Cost
    ) -> ExecutionResult:
        account = self.books.account(ask.token)
        limits = {
            "cost": price.points, "limit": account.limit("graphql"), "remaining": account.remaining("graphql"),
            "used": account.used.get("graphql", 0), "nodeCount": price.nodes,
            "resetAt": iso(account.reset.get("graphql", 0)),
        }  # fmt: skip
        look = Look(self.world, ask, self.books, lambda r: GitReader(r.git_dir), limits, {})
        return execute_sync(
            schema(), document, root_value=self.world, context_value=look, variable_values=variables,
            operation_name=name, field_resolver=_resolve, type_resolver=lambda value, *_: kind_of(value),
        )  # fmt: skip


def _too_many(nodes: int) -> dict[str, Any]:
    text = f"This query requests up to {nodes:,} possible nodes which exceeds the maximum limit of 500,000."
    return {"type": "MAX_NODE_LIMIT_EXCEEDED", "message": text}
