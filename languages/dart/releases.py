"""Dart releases: official images. Debian has only one in sid, which is newer than all of these."""

from __future__ import annotations

from datetime import date

from languages.base import Release


def _make_release(version: str, released: date) -> Release:
    return Release(
        version=version, official=f"dart:{version}", released=released, probe="dart --version > /dev/null 2>&1"
    )


RELEASES = (
    _make_release("2.12", date(2021, 3, 3)),
    _make_release("2.13", date(2021, 5, 19)),
    _make_release("2.14", date(2021, 9, 8)),
    _make_release("2.15", date(2021, 12, 8)),
    _make_release("2.16", date(2022, 2, 3)),
    _make_release("2.17", date(2022, 5, 11)),
    _make_release("2.18", date(2022, 8, 30)),
    _make_release("2.19", date(2023, 1, 25)),
    _make_release("3.0", date(2023, 5, 10)),
    _make_release("3.1", date(2023, 8, 16)),
    _make_release("3.2", date(2023, 11, 15)),
    _make_release("3.3", date(2024, 2, 15)),
    _make_release("3.4", date(2024, 5, 14)),
    _make_release("3.5", date(2024, 8, 6)),
    _make_release("3.6", date(2024, 12, 11)),
    _make_release("3.7", date(2025, 2, 12)),
    _make_release("3.8", date(2025, 5, 20)),
    _make_release("3.9", date(2025, 8, 13)),
    _make_release("3.10", date(2025, 11, 12)),
)
DEFAULT = "3.5"
