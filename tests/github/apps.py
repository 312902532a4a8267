"""GitHub Apps: installations, and the short-lived tokens they get for a signed JWT."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field

import jwt

from tests.github.answers import Answer, Ask, as_json, message
from tests.github.budget import Clock, Limits, Token
from tests.github.repository_fields import iso


@dataclass
class App:
    """A GitHub App: its id, the public half of its key (PEM), and its installations (id: account)."""

    id: int
    public_key: str
    installations: dict[int, str]
    private: frozenset[str] = frozenset()  # private repositories its tokens open
    limits: Limits = field(default_factory=Limits)
    lifetime: float = 3600.0  # of a token, in seconds of the server's clock
    issued: list[Token] = field(default_factory=list)


def wrong_jwt(app: App, header: str) -> str | None:
    """Why GitHub would refuse this JWT, or None. Its times are the real clock's, ten minutes at most."""
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


def issue_token(app: App | None, installation: int, ask: Ask, clock: Clock, tokens: dict[str, Token]) -> Answer:
    """POST /app/installations/{id}/access_tokens: a new token, known to the server from now on."""
    header = ask.headers.get("authorization", "")
    why = wrong_jwt(app, header) if app and header.lower().startswith("bearer ") else "A JSON web token is required"
    if why or not app:
        return message(401, why or "Integration not found")
    if installation not in app.installations:
        return message(404, "Not Found")
    new = Token(
        "ghs_" + secrets.token_hex(18), login=f"app-{app.id}", limits=app.limits, private=app.private,
        installation=installation, expires_at=clock.now() + app.lifetime,
    )  # fmt: skip
    tokens[new.value] = new
    app.issued.append(new)
    return as_json(
        201,
        {
            "token": new.value, "expires_at": iso(clock.now() + app.lifetime), "repository_selection": "all",
            "permissions": {"contents": "read", "issues": "read", "metadata": "read", "pull_requests": "read"},
        },
    )  # fmt: skip
