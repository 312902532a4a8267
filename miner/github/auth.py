"""Who asks: tokens and a GitHub App, out of the settings. A secret leaves this module only inside `SecretStr`.

Without any, GitHub refuses GraphQL and allows 60 REST requests an hour to an address. That is enough to look at a
repository, and not enough to mine one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import SecretStr

from mergemill.errors import InputError, MachineError

if TYPE_CHECKING:
    from mergemill.config import Settings

HOW = "set GITHUB_TOKEN; one without any scope reads public repositories"
_SHOWN = 4
_LONG = 12  # of a token this short four characters would be too many to show


@dataclass(frozen=True)
class App:
    """A GitHub App's installation, which gets itself tokens of an hour."""

    id: str
    key: SecretStr
    installation: int


@dataclass(frozen=True)
class Credential:
    """One who may ask. With neither token nor App it is nobody in particular."""

    label: str
    """For people and logs."""
    token: SecretStr | None = None
    app: App | None = None

    @property
    def anonymous(self) -> bool:
        """Whether GitHub is not told who asks."""
        return self.token is None and self.app is None


def credentials(settings: Settings) -> tuple[Credential, ...]:
    """All credentials of the settings, in their order; a single anonymous one when there are none.

    Raises:
        InputError: a token cannot be one, or the App's settings are incomplete or its key is not readable.
    """
    tokens = settings.found_github_tokens()
    found = [_of_token(token, place, len(tokens)) for place, token in enumerate(tokens, 1)]
    if app := _app(settings):
        found.append(Credential(f"installation {app.installation} of App {app.id}", app=app))
    return tuple(found) or (Credential("nobody (no token)"),)


def no_token(what: str) -> MachineError:
    """What is said where nobody may ask that."""
    return MachineError(
        f"{what} needs a GitHub token, and none is set: without one GitHub answers no GraphQL and 60 requests an hour",
        advice=f"{HOW}; git:URL of a clone needs none",
    )


def _of_token(token: SecretStr, place: int, count: int) -> Credential:
    text = token.get_secret_value()
    label = f"token {place} of {count}" if count > 1 else "the token"
    # Elsewhere such a token would stand in an error of the HTTP library.
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InputError(f"{label} holds blanks or characters no token has", advice="set GITHUB_TOKEN anew")
    if len(text) >= _LONG:
        label += f" (...{text[-_SHOWN:]})"
    return Credential(label, token=token)


def _app(settings: Settings) -> App | None:
    parts = {name: getattr(settings, name) for name in ("github_app_id", "github_app_key", "github_app_installation")}
    lacking = [name for name, value in parts.items() if value is None]
    if len(lacking) == len(parts):
        return None
    if lacking:
        raise InputError(f"a GitHub App needs {' and '.join(lacking)}, too")
    path = parts["github_app_key"]
    try:
        key = SecretStr(path.read_text(encoding="ascii"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the App's key {path}: {getattr(error, 'strerror', 'it is no PEM')}") from None
    return App(id=parts["github_app_id"], key=key, installation=parts["github_app_installation"])
