"""Order of texts that is the same on both databases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import UnaryExpression
from sqlalchemy.ext.compiler import compiles


class ByteOrder(UnaryExpression[str]):
    """Text that is ordered by its bytes, as SQLite orders it, whatever the collation of a PostgreSQL database."""

    inherit_cache = True


@compiles(ByteOrder)
def _compile_byte_order(element: ByteOrder, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.element, **options))


@compiles(ByteOrder, "postgresql")
def _compile_byte_order_postgresql(element: ByteOrder, compiler: Any, **options: Any) -> str:
    return f'({compiler.process(element.element, **options)}) COLLATE "C"'
