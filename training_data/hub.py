"""Names of the Hugging Face hub for the front matter of a data set's card."""

from __future__ import annotations

import re

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""Upper bound of the number of rows -> the hub's name of the size."""
LARGEST_SIZE = "1M<n<10M"
HUB_LICENSES = frozenset(
    (
        "apache-2.0",
        "mit",
        "bsd-2-clause",
        "bsd-3-clause",
        "isc",
        "mpl-2.0",
        "gpl-2.0",
        "gpl-3.0",
        "lgpl-2.1",
        "lgpl-3.0",
        "agpl-3.0",
        "unlicense",
        "zlib",
        "wtfpl",
        "cc0-1.0",
        "epl-1.0",
        "epl-2.0",
        "artistic-2.0",
        "postgresql",
        "ncsa",
        "bsl-1.0",
        "eupl-1.1",
        "0bsd",
    )
)
"""Names of licences that the hub knows; they are the SPDX ids in lower case, without `-only` and `-or-later`."""
OTHER = "other"
_OPERATORS = re.compile(r" (?:AND|OR) ")
_GRANTS = re.compile(r"-only$|-or-later$|\+$")


def name_size(rows: int) -> str:
    """Return the hub's name of the size of a data set."""
    return next((name for bound, name in SIZES if rows < bound), LARGEST_SIZE)


def name_licenses(licenses: list[str]) -> str | list[str]:
    """Return the hub's names of all licences in SPDX expressions, sorted; one alone is not a list.

    `other` is for licences that the hub does not know, those with an exception, and texts that are no expression.
    """
    names = sorted({name for expression in set(licenses) for name in _list_names(expression)})
    return names[0] if len(names) == 1 else names


def _list_names(expression: str) -> list[str]:
    try:
        canonical = canonicalize_license_expression(expression)
    except InvalidLicenseExpression:
        return [OTHER]
    parts = _OPERATORS.split(canonical.replace("(", "").replace(")", ""))
    names = [_GRANTS.sub("", part.strip()).lower() for part in parts]
    return [name if name in HUB_LICENSES else OTHER for name in names]
