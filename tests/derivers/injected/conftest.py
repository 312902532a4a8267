"""A scripted model that writes bugs and statements."""

from __future__ import annotations

from tests.backends.llm.conftest import client, server

__all__ = ["client", "server"]
