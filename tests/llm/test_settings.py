"""The settings of a model, and what the doctor says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from mergemill import doctor
from mergemill.config import Settings
from mergemill.doctor import Check, Machine
from mergemill.errors import InputError
from tests.cli import mergemill
from tests.llm.server import Fails, ModelServer


def look(server: ModelServer, **settings: object) -> Check:
    return doctor.model(Machine(Settings.model_validate({"llm": server.url, "model": "scripted", **settings})))


def test_the_doctor_says_whether_the_endpoint_answers_and_has_the_model(server: ModelServer) -> None:
    good, other = look(server), look(server, model="gpt-9")
    assert (good.ok, good.detail) == (True, f"{server.url} answers and has scripted")
    assert not other.ok
    assert other.fix == "--model: scripted"
    server.models = None
    assert look(server).detail == f"{server.url} answers"
    assert doctor.model(Machine(Settings(llm="off"))).ok


def test_the_doctor_says_when_nobody_answers(tmp_path: Path, server: ModelServer) -> None:
    words = ["doctor", "--llm", "http://127.0.0.1:9/v1", "--model", "x", "--json"]
    line = next(line for line in mergemill(*words, cwd=tmp_path).lines if line["name"] == "model")
    assert not line["ok"]
    assert "127.0.0.1:9" in line["detail"]


def test_the_key_is_no_option_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    assert Settings().found_llm_key().get_secret_value() == "sk-of-the-environment"
    monkeypatch.setenv("MERGEMILL_LLM_KEY", "sk-of-the-setting")
    settings = Settings()
    assert settings.found_llm_key().get_secret_value() == "sk-of-the-setting"
    assert "sk-of" not in f"{settings!r} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"llm": "ftp://model"}, "http"),
        ({"llm": "http://ada:secret@model/v1", "model": "m"}, "MERGEMILL_LLM_KEY"),
        ({"llm": "http://model/v1"}, "--llm asks"),
    ],
)
def test_addresses_that_cannot_be_asked_are_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate(given)


def test_a_wrong_key_is_told_by_the_doctor(server: ModelServer) -> None:
    server.listing = Fails(status=401, message="Incorrect API key provided: sk-wrong")
    with pytest.raises(InputError) as raised:
        look(server, llm_key="sk-wrong")
    assert "MERGEMILL_LLM_KEY" in raised.value.advice
    assert "sk-wrong" not in raised.value.line()
