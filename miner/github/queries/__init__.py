"""The GraphQL documents that are sent to GitHub, a file each; `{RATE}` in them is `miner.github.api.RATE`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def load_query(name: str) -> str:
    """The text of `NAME.graphql`."""
    return files(__name__).joinpath(f"{name}.graphql").read_text(encoding="utf-8")
