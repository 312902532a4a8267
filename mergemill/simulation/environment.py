"""A server of simulated environments: `mergemill simulate env`. Everything that it keeps lies in its output folder.

=====================  ==============================================================================
`run.json`             the options that the server was given: domain, options, models, hashes of the seeds
`calls.jsonl`          ledger of answers; `prompts/` their prompts (`backends.llm.ledger`)
`episodes/ID.json`     the record of each episode; `index.jsonl` a line for each reset
=====================  ==============================================================================

The routes are thin: `simulators.environment.service` decides everything.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import uvicorn
from fastapi import Body, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from backends.llm.ledger import CallLedger
from core.errors import CancelledRunError, InputError, MergemillError, Transient, UsageError, make_write_error
from core.sockets import bind_socket
from mergemill import __version__
from mergemill.execution.services import make_model
from mergemill.simulation.run import check_folder
from mergemill.web.request_guard import AccessRules, RequestGuard, is_loopback, make_access_rules
from simulators.domains.pack import load_pack
from simulators.environment.agent_turn import AgentTurn, parse_agent_text, read_agent_calls
from simulators.environment.calls import PlayerError, SimulatorCalls
from simulators.environment.folder import EpisodeFolder
from simulators.environment.options import apply_profile, resolve_options
from simulators.environment.player import JUDGE_PROMPT, OPENING_PROMPT, STEP_PROMPT, ConversationPlayer
from simulators.environment.rows import find_first_message
from simulators.environment.service import ConflictError, EpisodeService, ResetRequest
from simulators.seeds.reading import read_seeds
from simulators.trajectory import ENVIRONMENT
from training_data.row_files import replace_file

if TYPE_CHECKING:
    from backends.llm.base import LanguageModel
    from core.config import Settings

log = logging.getLogger(__name__)
RUN_NAME = "run.json"
SHUTDOWN_SECONDS = 5
"""Time that requests in progress have after Ctrl-C; a step that is cut is requested again."""
T = TypeVar("T")
_STATUS = {UsageError: 400, ConflictError: 409, InputError: 404, CancelledRunError: 503, Transient: 503}


@dataclass(frozen=True, kw_only=True)
class EnvironmentRequest:
    """Options that a server is given, besides settings."""

    seeds: Path
    domain: str
    out: Path
    profile: str
    seeds_license: str = ""


class EpisodeResetBody(BaseModel):
    """Which episode begins."""

    model_config = ConfigDict(extra="forbid")
    task: str | None = Field(None, description="Id or name of a task, see /tasks.")
    seed: int | None = Field(None, description="A number: equal ones give equal beginnings.")
    group: int = Field(0, ge=0, description="Environments of a group get equal beginnings.")
    groups: int | None = Field(None, ge=1, description="Number of groups; default: --episode-groups.")
    episode: int | None = Field(None, ge=0, description="Number among those of the environment; default: the next.")
    env_id: str | int = Field("", description="Name of the environment.")


class EpisodeStepBody(BaseModel):
    """A turn of the agent: its text, or text and calls that were parsed before."""

    model_config = ConfigDict(extra="forbid")
    episode: str
    text: str | None = Field(None, description="What the agent wrote, calls in <tool_call>.")
    tool_calls: list[dict[str, Any]] | None = Field(None, description="Calls, in OpenAI's form or {name, arguments}.")
    turn: int | None = Field(None, ge=0, description="Number of the turn, from 0, so that it can be sent again.")
    context_tokens: int | None = Field(None, ge=0, description="Tokens of the agent's context with this turn.")

    @model_validator(mode="after")
    def _check_content(self) -> EpisodeStepBody:
        if self.text is None and self.tool_calls is None:
            raise ValueError("give text, tool_calls, or both")
        return self

    def read_turn(self) -> AgentTurn:
        """Return the turn."""
        if self.tool_calls:
            return read_agent_calls(self.text or "", self.tool_calls)
        return parse_agent_text(self.text or "")


class EvaluateBody(BaseModel):
    """Which episode is evaluated."""

    model_config = ConfigDict(extra="forbid")
    episode: str


@contextmanager
def open_service(
    request: EnvironmentRequest, settings: Settings, report: Callable[[str], None]
) -> Iterator[tuple[EpisodeService, int]]:
    """Yield the service of a request and the number of its threads, while its folder is locked.

    Args:
        request: seeds, domain and folder.
        settings: model and options.
        report: function that receives a line for each seed that cannot be read.

    Raises:
        InputError: seeds, domain or folder are not usable.
        UsageError: no model is set, or there is no such profile.
    """
    options = resolve_options(request.profile, settings)
    settings = apply_profile(request.profile, settings)
    pack = load_pack(request.domain)
    collection = read_seeds(request.seeds, license_id=request.seeds_license)
    for problem in collection.problems:
        report(problem.format_line())
    seeds = [seed for seed in collection.seeds if find_first_message(seed)]
    if len(seeds) < len(collection.seeds):
        report(f"{len(collection.seeds) - len(seeds)} seeds left out: nobody writes a first message")
    if not seeds:
        raise InputError(f"{request.seeds} has no seed that begins with a person's message")
    limits = {"answer_tokens": settings.llm.answer_tokens}
    models = {
        prompts: (make_model(settings.llm, settings.host, temperature=temperature), temperature)
        for prompts, temperature in (
            (f"{STEP_PROMPT} {OPENING_PROMPT}", options.temperature),
            (JUDGE_PROMPT, options.judge_temperature),
        )
    }
    check_folder(request.out)
    with CallLedger(request.out) as ledger:
        simulator, judge = (
            _make_calls(model, ledger, {**limits, "temperature": temperature, "prompt": prompts})
            for prompts, (model, temperature) in models.items()
        )
        player = ConversationPlayer(
            pack=pack,
            seeds=seeds,
            options=options,
            simulator=simulator,
            judge=judge,
            target=settings.simulation.target or "qwen",
        )
        run = {
            "kind": "mergemill-environment",
            "mergemill": __version__,
            "environment": ENVIRONMENT,
            "domain": pack.name,
            "options": asdict(options),
            "configuration": dict(player.configuration),
            "seeds": [seed.id for seed in seeds],
        }
        try:
            replace_file(request.out / RUN_NAME, json.dumps(run, indent=1) + "\n")
        except OSError as error:
            raise make_write_error(f"cannot write to {request.out}", error, advice="free some space") from error
        try:
            yield (
                EpisodeService(player=player, folder=EpisodeFolder(request.out), options=options),
                settings.cluster.workers,
            )
        finally:
            player.stop()


def _make_calls(model: LanguageModel | None, ledger: CallLedger, determined_by: dict[str, Any]) -> SimulatorCalls:
    if model is None:
        raise UsageError("a simulator is needed", advice="set --llm URL and --model NAME")
    return SimulatorCalls(model=model, ledger=ledger, settings=determined_by)


def serve_environment(
    request: EnvironmentRequest,
    settings: Settings,
    announce: Callable[[str], None],
    *,
    host: str,
    port: int,
    token: str | None,
) -> None:
    """Serve simulated environments until Ctrl-C.

    Args:
        request: seeds, domain and folder.
        settings: model and options.
        announce: function that receives lines for people, the last of which has the address.
        host: address to listen at.
        port: its port, 0 for any free port.
        token: token that requests must carry; None where none is needed.

    Raises:
        InputError, UsageError: as `open_service`, or the host is not an address of this machine.
        MachineError: the port is in use or may not be used.
    """
    if not is_loopback(host) and token is None:
        raise UsageError(f"anyone who reaches {host} could spend your money", advice="set --token")
    with open_service(request, settings, announce) as (service, workers), closing(bind_socket(host, port)) as listener:
        described = service.describe()
        announce(
            f"{described['samples']} tasks of {described['domain']}, {described['episodes']} earlier episodes in"
            f" {request.out} (environment: {ENVIRONMENT})"
        )
        shown = f"[{host}]" if ":" in host else host
        announce(f"http://{shown}:{listener.getsockname()[1]}/ (Ctrl-C ends it)")
        with ThreadPoolExecutor(workers, thread_name_prefix="mergemill-episode") as threads:
            config = uvicorn.Config(
                make_application(service, threads, make_access_rules(host, token)),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            )
            try:
                uvicorn.Server(config).run(sockets=[listener])
            except KeyboardInterrupt:
                pass  # uvicorn raises it again once all requests are answered
            finally:
                service.player.stop()


def make_application(service: EpisodeService, threads: ThreadPoolExecutor, rules: AccessRules) -> FastAPI:
    """Return the application that serves episodes; `threads` run their steps."""
    application = FastAPI(
        title="mergemill simulated environment",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )

    async def run(work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    @application.get("/health", summary="Describe the server")
    async def health() -> dict[str, Any]:
        return service.describe()

    @application.get("/tasks", summary="List the tasks")
    async def tasks() -> list[dict[str, Any]]:
        return service.list_tasks()

    @application.post("/reset", summary="Begin an episode")
    async def reset(body: Annotated[EpisodeResetBody, Body()]) -> dict[str, Any]:
        request = ResetRequest(**{**body.model_dump(), "env_id": str(body.env_id)})
        return await run(partial(service.reset, request))

    @application.post("/step", summary="Answer a turn of the agent")
    async def step(body: Annotated[EpisodeStepBody, Body()]) -> dict[str, Any]:
        turn = body.read_turn()
        return await run(
            partial(service.step, body.episode, turn, number=body.turn, context_tokens=body.context_tokens)
        )

    @application.post("/evaluate", summary="Judge an episode")
    async def evaluate(body: Annotated[EvaluateBody, Body()]) -> dict[str, Any]:
        return await run(partial(service.evaluate, body.episode))

    @application.get("/episodes/{episode}", summary="Show the record of an episode")
    async def show(episode: str) -> dict[str, Any]:
        return await run(partial(service.get, episode))

    for kind in (MergemillError, PlayerError, HTTPException, RequestValidationError):
        application.add_exception_handler(kind, _answer_error)
    application.middleware("http")(partial(_guard_request, rules))
    application.add_middleware(RequestGuard, rules=rules)
    return application


async def _guard_request(rules: AccessRules, request: Request, call_next: Callable[[Request], Any]) -> Any:
    """Answer requests without the token, if any, and unexpected exceptions; `/health` needs no token."""
    given = request.headers.get("authorization", "")
    if rules.token is not None and request.url.path != "/health" and not rules.accepts_token(given):
        return JSONResponse({"error": "the token is missing or wrong", "advice": "Authorization: Bearer TOKEN"}, 401)
    try:
        return await call_next(request)
    except Exception as error:  # noqa: BLE001 - it is logged
        return await _answer_error(request, error)


async def _answer_error(request: Request, error: Exception) -> JSONResponse:
    """Return an error as JSON.

    A line and the next step. 503 is for a request that may succeed when it is sent again.
    """
    advice = ""
    if isinstance(error, HTTPException):
        status, message = error.status_code, str(error.detail)
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        status, message = 400, f"{'.'.join(map(str, first['loc'][1:])) or 'body'}: {first['msg']}"
    elif isinstance(error, PlayerError):
        status, message = 503, str(error)
    elif isinstance(error, MergemillError):
        status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 500)
        message, advice = str(error), error.advice
    else:
        log.error("%s %s failed through a bug", request.method, request.url.path, exc_info=error)
        status, message = 500, "the server failed through a bug; its log has the details"
    return JSONResponse({"error": message, "advice": advice}, status)
