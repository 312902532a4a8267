"""GitHub Apps: installations, and the short-lived tokens they get for a signed JWT."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

import jwt

from tests.github.answers import ApiRequest, ApiResponse, make_error_response, make_json_response
from tests.github.rate_limits import AccessToken, ServerClock, TokenLimits
from tests.github.repository_fields import format_iso


@dataclass
class ServerApp:
    """A GitHub App: its id, the public half of its key (PEM), and its installations (id: account)."""

    id: int
    public_key: str
    installations: dict[int, str]
    private: frozenset[str] = frozenset()  # private repositories of its tokens
    limits: TokenLimits = field(default_factory=TokenLimits)
    lifetime: float = 3600.0  # lifetime of a token, in seconds of the server's clock
    issued: list[AccessToken] = field(default_factory=list)


def find_jwt_error(app: ServerApp, header: str) -> str | None:
    """Return the reason GitHub would reject this JWT, or None. Its times are real ones, at most ten minutes."""
    try:
        claims = jwt.decode(
            header.partition(" ")[2], app.public_key, algorithms=["RS256"], options={"require": ["exp", "iat", "iss"]}
        )
    except jwt.ExpiredSignatureError:
        return "'Expiration time' claim ('exp') must be a numeric value representing the future time"
    except jwt.PyJWTError:
        return "A JSON web token could not be decoded"
    if claims["exp"] > time.time() + 600 + 60:
        return "'Expiration time' claim ('exp') is too far in the future"
    return None if str(claims["iss"]) == str(app.id) else "Integration not found"


def issue_token(
    app: ServerApp | None, installation: int, ask: ApiRequest, clock: ServerClock, tokens: dict[str, AccessToken]
) -> ApiResponse:
    """POST /app/installations/{id}/access_tokens: return a new token, which the server accepts from now on."""
    header = ask.headers.get("authorization", "")
    why = (
        find_jwt_error(app, header) if app and header.lower().startswith("bearer ") else "A JSON web token is required"
    )
    if why or not app:
        return make_error_response(401, why or "Integration not found")
    if installation not in app.installations:
        return make_error_response(404, "Not Found")
    new = AccessToken(
        "ghs_" + secrets.token_hex(18),
        login=f"app-{app.id}",
        limits=app.limits,
        private=app.private,
        installation=installation,
        expires_at=clock.now() + app.lifetime,
    )
    tokens[new.value] = new
    app.issued.append(new)
    return make_json_response(
        201,
        {
            "token": new.value,
            "expires_at": format_iso(clock.now() + app.lifetime),
            "repository_selection": "all",
            "permissions": {"contents": "read", "issues": "read", "metadata": "read", "pull_requests": "read"},
        },
    )
