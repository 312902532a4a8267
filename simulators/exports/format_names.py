"""Names of the formats of rows: what a command needs before it imports what writes them."""

from __future__ import annotations

FORMAT_NAMES = ("sharegpt", "sharegpt-hermes", "messages", "parquet")
"""Formats of `training_data` in which simulated conversations are written."""
