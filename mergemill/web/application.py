"""The web application: pages, API, static files, and the handling becomes of errors."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from core.config import Settings
from core.errors import InputError, MachineError, MergemillError, Transient, UsageError
from core.validation import describe_invalid
from mergemill import __version__
from mergemill.web.api import make_router
from mergemill.web.context import WebContext
from mergemill.web.grading_api import make_grading_router
from mergemill.web.grading_service import GradingService
from mergemill.web.pages import make_routes
from mergemill.web.rendering import FOLDER, DataResponse
from mergemill.web.request_guard import AccessRules, RequestGuard
from taskdb.artifacts import open_artifacts
from taskdb.store import Store

log = logging.getLogger(__name__)
API_PREFIX = "/api/v1"
QUEUE_LIMIT = 1000
"""Submissions that may wait to be graded, unless another number is given."""
_STATUS = {UsageError: 400, InputError: 404, MachineError: 503, Transient: 503}


def make_application(
    store: Store, settings: Settings, rules: AccessRules, *, queue_limit: int = QUEUE_LIMIT
) -> FastAPI:
    """Return the application that serves a database; `queue_limit`: submissions that may wait to be graded."""
    grading = GradingService(store, settings, queue_limit)
    context = WebContext(settings.storage, store, open_artifacts(settings.storage), rules, grading)
    application = FastAPI(
        title="mergemill",
        version=__version__,
        description="Tasks, funnel and grading of one task database.",
        openapi_url=f"{API_PREFIX}/openapi.json",
        docs_url=None,  # these pages load scripts from other hosts
        redoc_url=None,
        swagger_ui_oauth2_redirect_url=None,
        redirect_slashes=False,
    )
    application.state.grading = grading
    for router in (make_router(context), make_grading_router(context)):
        application.include_router(router, prefix=API_PREFIX)
    application.router.routes.extend(make_routes(context, partial(_answer_any_error, context)))
    application.mount("/static", StaticFiles(directory=FOLDER / "static"), name="static")
    for kind in (MergemillError, HTTPException, RequestValidationError):
        application.add_exception_handler(kind, partial(_answer_error, context))
    application.middleware("http")(partial(_catch_bugs, context))
    application.add_middleware(RequestGuard, rules=rules)
    return application


async def _answer_error(context: WebContext, request: Request, error: Exception) -> Response:
    """Return an error as a page, or as JSON below the API's prefix."""
    advice = ""
    if isinstance(error, HTTPException):
        status, message = error.status_code, str(error.detail)
    elif isinstance(error, RequestValidationError):
        status, message = 400, describe_invalid(error.errors(), "the body", outer=1)
    elif isinstance(error, MergemillError):
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
        message, advice = str(error), error.advice
    else:
        status, message = 500, "the server failed through a bug; its log has the details"
    headers = getattr(error, "headers", None)
    if request.url.path.startswith(f"{API_PREFIX}/"):
        return DataResponse({"error": message, "advice": advice}, status, headers)
    return context.render("error.html", {"status": status, "message": message, "advice": advice}, status)


async def _catch_bugs(
    context: WebContext, request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    """Answer an unexpected exception without its traceback, which the log has."""
    try:
        return await call_next(request)
    except Exception as error:  # noqa: BLE001 - it is logged
        return await _answer_any_error(context, request, error)


async def _answer_any_error(context: WebContext, request: Request, error: Exception) -> Response:
    """Return an error as `_answer_error` does; an error that nobody foresaw is logged."""
    if not isinstance(error, (MergemillError, HTTPException, RequestValidationError)):
        log.error("%s %s failed through a bug", request.method, request.url.path, exc_info=error)
    return await _answer_error(context, request, error)
