"""Requirements that a repair adds to a draft: which are valid, and which concern the same distribution."""

from __future__ import annotations

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from languages.facts import parse_distribution_name


def find_requirement_fault(text: str) -> str:
    """Return why a text is no requirement of PEP 508, or has an address; empty if it is one that may be added."""
    try:
        parsed = Requirement(text)
    except InvalidRequirement as error:
        return f"{text!r} is no requirement: {str(error).splitlines()[0]}"
    return f"{text!r}: packages come from the index, not from an address" if parsed.url else ""


def parse_package_name(text: str) -> str:
    """Return the canonical name of the distribution that a text requires, or that it names."""
    return str(canonicalize_name(parse_distribution_name(text)))
