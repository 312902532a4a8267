"""Objects that all pages and the API share: database, artifacts, templates and access rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2

from core.settings.storage import StorageSettings
from mergemill.web.grading_service import GradingService
from mergemill.web.rendering import PageResponse, make_templates
from mergemill.web.request_guard import AccessRules
from taskdb.artifacts import Artifacts
from taskdb.store import Store


@dataclass(frozen=True)
class WebContext:
    """State of a server."""

    storage: StorageSettings
    store: Store
    artifacts: Artifacts
    rules: AccessRules
    grading: GradingService
    templates: jinja2.Environment = field(default_factory=make_templates)

    @property
    def rollouts(self) -> Path:
        """Folder of trajectories, one file each."""
        return self.storage.store_dir / "rollouts"

    @property
    def runs(self) -> Path:
        """Folder of the status files of runs."""
        return self.storage.store_dir / "runs"

    def render(self, template: str, values: Mapping[str, Any], status: int = 200) -> PageResponse:
        """Return a page; `values` as in `render_text`."""
        return PageResponse(self.render_text(template, values), status)

    def render_text(self, template: str, values: Mapping[str, Any]) -> str:
        """Return the text of a page.

        Args:
            template: name of its file.
            values: those of the template. `active`: the entry of the navigation it belongs to; `q`: words searched for;
                `is_start`: whether the text ends where the content of the page begins.
        """
        return self.templates.get_template(template).render({"active": "", "q": "", "is_start": False, **values})
