"""Errors of requests about episodes."""

from __future__ import annotations

from core.errors import InputError


class RefusedRequestError(InputError):
    """Request that is not served. `status`: of the HTTP response."""

    def __init__(self, message: str, *, status: int, advice: str = "") -> None:
        super().__init__(message, advice=advice)
        self.status = status


class ConflictError(RefusedRequestError):
    """Request that the episode, as it stands, does not permit: out of order, after the end, or beside another one."""

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message, status=409, advice=advice)
