"""Credentials: tokens and a GitHub App from the settings. A secret leaves this module only inside `SecretStr`.

Without credentials GitHub rejects GraphQL and allows 60 REST requests an hour per address: enough to look up a
repository, not enough to mine it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from core.errors import InputError, MachineError
from core.files import read_input

if TYPE_CHECKING:
    from core.settings.mining import GitHubSettings

TOKEN_ADVICE = "set GITHUB_TOKEN; one without any scope reads public repositories"  # noqa: S105 - advice, no password
_SHOWN_CHARACTERS = 4
_MIN_LENGTH_SHOWN = 12  # four characters of a shorter token would reveal too much


@dataclass(frozen=True)
class GitHubApp:
    """Installation of a GitHub App, which requests tokens that last an hour."""

    id: str
    key: SecretStr
    installation: int


@dataclass(frozen=True)
class Credential:
    """A token or an App; anonymous with neither."""

    label: str
    """For messages and logs."""
    token: SecretStr | None = None
    app: GitHubApp | None = None

    @property
    def is_anonymous(self) -> bool:
        """Whether requests carry no token."""
        return self.token is None and self.app is None


def load_credentials(github: GitHubSettings) -> tuple[Credential, ...]:
    """Return all credentials of the settings, in order; a single anonymous one when there are none.

    Raises:
        InputError: a token is malformed, or the App's settings are incomplete or its key unreadable.
    """
    tokens = github.find_tokens()
    credentials = [_build_token_credential(token, place, len(tokens)) for place, token in enumerate(tokens, 1)]
    if app := _build_app(github):
        credentials.append(Credential(f"installation {app.installation} of App {app.id}", app=app))
    return tuple(credentials) or (Credential("nobody (no token)"),)


def explain_missing_token(what: str) -> MachineError:
    """Build the error for a request that needs a token."""
    return MachineError(
        f"{what} needs a GitHub token, and none is set: without one GitHub rejects GraphQL "
        "and allows 60 requests an hour",
        advice=f"{TOKEN_ADVICE}; git:URL of a clone needs none",
    )


def _build_token_credential(token: SecretStr, place: int, count: int) -> Credential:
    text = token.get_secret_value()
    label = f"token {place} of {count}" if count > 1 else "the token"
    # Otherwise the HTTP library would print such a token in its error.
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InputError(f"{label} contains whitespace or illegal characters", advice="set GITHUB_TOKEN again")
    if len(text) >= _MIN_LENGTH_SHOWN:
        label += f" (...{text[-_SHOWN_CHARACTERS:]})"
    return Credential(label, token=token)


def _build_app(github: GitHubSettings) -> GitHubApp | None:
    given = github
    parts: dict[str, Any] = {
        "github_app_id": given.app_id,
        "github_app_key": given.app_key,
        "github_app_installation": given.app_installation,
    }
    lacking = [name for name, value in parts.items() if value is None]
    if len(lacking) == len(parts):
        return None
    if lacking:
        raise InputError(f"a GitHub App needs {' and '.join(lacking)}, too")
    path = parts["github_app_key"]
    try:
        key = SecretStr(read_input(path).decode("ascii"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the App's key {path}: {getattr(error, 'strerror', 'it is no PEM')}") from None
    return GitHubApp(id=parts["github_app_id"], key=key, installation=parts["github_app_installation"])
