"""`mergemill gateway`: the recording model gateway alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.errors import UsageError
from core.settings.models import LlmSettings, UpstreamSettings
from mergemill.cli import output
from mergemill.cli.options import UPSTREAM_SETTINGS, JsonOption, with_settings

if TYPE_CHECKING:
    from samplers.gateway.access import RolloutAccess

ANY_SECRET = "*"  # noqa: S105 - stands for the secret of each agent

app = typer.Typer(add_completion=False)


@app.command("gateway")
@with_settings(*UPSTREAM_SETTINGS, "model")
def gateway(
    log: Annotated[Path, typer.Option("--log", metavar="DIR", help="Record exchanges in this folder.")],
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="P", help="Listen at this port; 0 for a free one.")
    ] = 8500,
    host: Annotated[str, typer.Option("--host", metavar="H", help="Listen at this address.")] = "127.0.0.1",
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", metavar="NAME=SECRET", help="Accept this secret alone, and record to NAME.jsonl."),
    ] = None,
    as_json: JsonOption = False,
    *,
    upstream: UpstreamSettings,
    llm: LlmSettings,
) -> None:
    """Record the requests of agents to a model, in front of its server.

    An agent's base URL is http://HOST:PORT/r/SECRET/v1, or http://HOST:PORT with the secret as its API key.

    Example: mergemill gateway --upstream http://localhost:8000/v1 --log recordings
    """
    from samplers.gateway.access import RolloutAccess, Upstream  # noqa: PLC0415 - the server loads slowly
    from samplers.gateway.server import GatewayConfig, check_disk, run_gateway  # noqa: PLC0415

    config = GatewayConfig(
        upstream=Upstream.from_settings(upstream, llm),
        log_dir=log,
        host=host,
        port=port,
        rollouts=parse_secrets(secret or (), llm.model),
        open_access=None if secret else RolloutAccess(secret=ANY_SECRET, model=llm.model),
        stops_at_full_disk=True,
    )
    usage = run_gateway(
        config, lambda bound: output.print_message(f"http://{host}:{bound}/r/SECRET/v1 (Ctrl-C ends it)")
    )
    rows = [{"rollout": name, **used.model_dump()} for name, used in sorted(usage.items())]
    columns = ("rollout", "requests", "prompt_tokens", "completion_tokens", "cost", "failed")
    output.print_rows(rows, columns, as_lines=as_json, nothing="no requests")
    check_disk(usage)


def parse_secrets(words: list[str] | tuple[()], model: str | None) -> dict[str, RolloutAccess]:
    """Return the access for each NAME=SECRET.

    Raises:
        UsageError: a word has another form, or two have the same name or secret.
    """
    from samplers.gateway.access import RolloutAccess  # noqa: PLC0415 - loads pydantic's validators

    secrets: dict[str, RolloutAccess] = {}
    for word in words:
        name, sign, secret = word.partition("=")
        if not name or not sign or not secret:
            raise UsageError("--secret takes NAME=SECRET")
        if name in secrets or any(access.secret == secret for access in secrets.values()):
            raise UsageError(f"--secret {name}: names and secrets must differ")
        secrets[name] = RolloutAccess(secret=secret, model=model)
    return secrets
