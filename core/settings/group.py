"""Base of all groups of settings, lists that are written with commas, and checks of URLs.

A setting has two names: that of its field in the group, and a flat one, its alias, which users write: option, variable
and key of `mergemill.toml` are made from it. A group whose flat names begin alike generates the aliases; a field whose
flat name is made otherwise has an alias of its own; without either, both names are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from inspect import isclass
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator
from pydantic.fields import FieldInfo

Model = TypeVar("Model", bound=BaseModel)


def split_words(value: object) -> object:
    """Split a list that is written with commas, on the command line or in the environment."""
    return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value


SPLIT_WORDS = BeforeValidator(split_words)
WordList = Annotated[tuple[str, ...], SPLIT_WORDS]


class SettingsGroup(BaseModel):
    """Settings of one capability."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,  # `Settings` builds the validators of all groups; few groups are validated alone
    )

    @model_validator(mode="before")
    @classmethod
    def _distribute(cls, given: object) -> object:
        return distribute_values(cls, given) if isinstance(given, Mapping) else given


def iterate_groups(model: type[BaseModel]) -> Iterator[tuple[str, type[SettingsGroup]]]:
    """Yield each field that is a group, with the group's class."""
    for name, field in model.model_fields.items():
        if isclass(field.annotation) and issubclass(field.annotation, SettingsGroup):
            yield name, field.annotation


@cache
def list_settings(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return flat name of a setting -> its field, those of groups within the model included."""
    groups = dict(iterate_groups(model))
    own = {field.alias or name: field for name, field in model.model_fields.items() if name not in groups}
    return own | {flat: field for group in groups.values() for flat, field in list_settings(group).items()}


def list_given(model: BaseModel) -> set[str]:
    """Return the flat names of the settings that have been given values, which may be those of the defaults."""
    groups = dict(iterate_groups(type(model)))
    fields = type(model).model_fields
    own = {fields[name].alias or name for name in model.model_fields_set if name not in groups}
    return own.union(*(list_given(getattr(model, name)) for name in groups))


def distribute_values(model: type[BaseModel], given: Mapping[str, object]) -> dict[str, object]:
    """Return values by flat name with those of a group in a mapping of their own; case does not matter."""
    values = dict(given)
    for name, group in iterate_groups(model):
        settings = list_settings(group)
        below = {key.lower(): values.pop(key) for key in list(values) if key.lower() in settings}
        values.setdefault(model.model_fields[name].alias or name, below)
    return values


def replace_values(model: Model, changes: Mapping[str, object]) -> Model:
    """Return the settings with other values, by flat name. They are not validated.

    Raises:
        KeyError: there is no setting of a name.
    """
    if unknown := changes.keys() - list_settings(type(model)).keys():
        raise KeyError(*unknown)
    groups = dict(iterate_groups(type(model)))
    below = {
        name: {flat: changes[flat] for flat in list_settings(group) if flat in changes}
        for name, group in groups.items()
    }
    update: dict[str, object] = {name: replace_values(getattr(model, name), own) for name, own in below.items() if own}
    for name, field in type(model).model_fields.items():
        if name not in groups and (field.alias or name) in changes:
            update[name] = changes[field.alias or name]
    return model.model_copy(update=update)


def check_url(value: str, advice: str) -> str:
    """Return an http(s) URL without a slash at the end; `advice` is added to the error about credentials."""
    try:
        parts = urlsplit(value.strip())
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("is not the http(s) URL of an API")
    if parts.username or parts.password:
        raise ValueError(f"contains a name or password; {advice}")
    return value.strip().rstrip("/")
