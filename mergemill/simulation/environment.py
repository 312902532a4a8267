"""A server of simulated environments: `mergemill simulate env`. Everything that it keeps lies in its output folder.

=====================  ==============================================================================
`run.json`             the options that the server was given: domain, options, models, hashes of the seeds
`calls.jsonl`          ledger of answers; `prompts/` their prompts (`backends.llm.ledger`)
`episodes/ID.json`     the record of each episode; `index.jsonl` a line for each reset
=====================  ==============================================================================

`mergemill.simulation.application` has its routes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backends.llm.ledger import CallLedger
from core.errors import InputError, UsageError, make_write_error
from core.sockets import bind_socket
from mergemill import __version__
from mergemill.bench.held_out import refuse_seeds
from mergemill.execution.services import make_model
from mergemill.simulation.application import SimulationApplication
from mergemill.simulation.run import check_folder
from mergemill.web.request_guard import is_loopback, make_access_rules
from mergemill.web.server import run_application
from simulators.domains.pack import load_pack
from simulators.environment.calls import SimulatorCalls
from simulators.environment.folder import EpisodeFolder
from simulators.environment.options import apply_profile, resolve_options
from simulators.environment.player import JUDGE_PROMPT, OPENING_PROMPT, STEP_PROMPT, ConversationPlayer
from simulators.environment.rows import find_first_message
from simulators.environment.service import EpisodeService
from simulators.seeds.reading import read_seeds
from simulators.trajectory import ENVIRONMENT
from training_data.row_files import replace_file

if TYPE_CHECKING:
    from backends.llm.base import LanguageModel
    from core.config import Settings

RUN_NAME = "run.json"
SHUTDOWN_SECONDS = 5
"""Time that requests in progress have after Ctrl-C; a step that is cut is requested again."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentRequest:
    """Options that a server is given, besides settings."""

    seeds: Path
    domain: str
    out: Path
    profile: str
    seeds_license: str = ""
    with_held_out: bool = False
    """Whether conversations on held-out tasks may be seeds."""


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
    usable, n_held_out = refuse_seeds(collection.seeds, settings.storage, report, with_held_out=request.with_held_out)
    seeds = [seed for seed in usable if find_first_message(seed)]
    if len(seeds) < len(usable):
        report(f"{len(usable) - len(seeds)} seeds left out: nobody writes a first message")
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
            **({"held_out": n_held_out} if n_held_out else {}),
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
        port: port of the host, 0 for any free port.
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
        with ThreadPoolExecutor(workers, thread_name_prefix="mergemill-episode") as threads:
            application = SimulationApplication(service, threads, make_access_rules(host, token)).build()
            try:
                run_application(application, listener, host, announce, shutdown_seconds=SHUTDOWN_SECONDS)
            finally:
                service.player.stop()
