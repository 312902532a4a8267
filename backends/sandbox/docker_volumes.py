"""Volume store of a Docker engine."""

from __future__ import annotations

import http
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import requests

from backends.sandbox.volumes import StoredVolume

_NOT_REMOVED = frozenset({http.HTTPStatus.NOT_FOUND, http.HTTPStatus.CONFLICT})


class DockerVolumeStore:
    """See `backends.sandbox.volumes.VolumeStore`.

    Args:
        get_client: function that returns the calling thread's client.
        translate_errors: function that turns the engine's exceptions into this project's.
    """

    def __init__(
        self, get_client: Callable[[], Any], translate_errors: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._get_client = get_client
        self._translate_errors = translate_errors

    def create(self, name: str, labels: Mapping[str, str]) -> None:
        """Make a volume."""
        with self._translate_errors():
            self._get_client().create_volume(name, labels=dict(labels))

    def list_volumes(self, prefix: str) -> list[StoredVolume]:
        """Return the volumes whose names begin so."""
        with self._translate_errors():
            listed = self._get_client().volumes(filters={"name": prefix})["Volumes"] or ()
        volumes = [
            StoredVolume(
                name=volume["Name"],
                labels=volume["Labels"] or {},
                modified_at=volume.get("CreatedAt", ""),  # of Docker's own driver, the time of the top folder
            )
            for volume in listed
        ]
        return sorted((volume for volume in volumes if volume.name.startswith(prefix)), key=lambda volume: volume.name)

    def remove(self, name: str) -> bool:
        """Remove a volume."""
        with self._translate_errors():
            try:
                self._get_client().remove_volume(name)
            except requests.HTTPError as error:
                if error.response is not None and error.response.status_code in _NOT_REMOVED:
                    return False
                raise
        return True
