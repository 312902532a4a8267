"""Export formats, a module for each, or for several that share a writer.

A module's FORMATS has the formats that it writes: name -> `exporters.export_format.ExportFormat`. No list has to name
the module.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from exporters.export_format import ExportFormat


def load_formats() -> dict[str, ExportFormat]:
    """Return name -> format of all modules of this package, sorted by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return dict(sorted(item for module in modules for item in module.FORMATS.items()))
