"""A scripted model that mirrors issues."""

from __future__ import annotations

from tests.backends.llm.conftest import client, server

__all__ = ["client", "server"]
