"""Client of a rollout's gateway for loops that run in this process: one request at a time, kept up over a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import requests
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential

from backends.llm.meter import BudgetExceededError
from samplers.scaffolds.base import GatewayEndpoint

GATEWAY_PATIENCE = 180.0
"""Seconds that a restart of the gateway may take."""


class GatewayError(Exception):
    """The gateway gives no answer: a budget is used up, or the upstream failed; its records have the reason."""


def request_completion(endpoint: GatewayEndpoint, body: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    """Send a request for a chat completion and return the response, which has a message.

    The gateway itself retries, prices and records; a connection that fails is made again.

    Args:
        endpoint: gateway of the rollout.
        body: the request as it is sent.
        seconds: time limit of each attempt; None for none.

    Raises:
        GatewayError: there is no answer.
        BudgetExceededError: the time is used up.
    """
    patience = Retrying(
        retry=retry_if_exception_type(requests.ConnectionError),
        stop=stop_after_delay(GATEWAY_PATIENCE),
        wait=wait_exponential(0.2, max=5),
        reraise=True,
    )
    try:
        response = patience(_post, endpoint, body, seconds)
    except requests.Timeout as error:
        raise BudgetExceededError("the time is used up") from error
    except requests.RequestException as error:
        raise GatewayError(str(error)[:300]) from error
    try:
        data: dict[str, Any] = response.json()
        if response.ok:
            dict(data["choices"][0]["message"])
            return data
        detail = data["error"]["message"]
    except (ValueError, LookupError, TypeError):
        detail = response.text
    raise GatewayError(f"{response.status_code}: {detail}"[:300])


def _post(endpoint: GatewayEndpoint, body: Mapping[str, Any], seconds: float | None) -> requests.Response:
    url = f"{endpoint.host_url}/v1/chat/completions"
    headers = {"Authorization": f"Bearer {endpoint.secret}"}
    return requests.post(url, json=body, headers=headers, timeout=seconds)
