"""Settings of a model, and the doctor's check of its endpoint."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from core.config import Settings
from core.errors import InputError
from mergemill.operations import doctor
from mergemill.operations.doctor import Machine, MachineCheck
from tests.backends.llm.server import ModelServer, ScriptedFailure
from tests.cli import run_mergemill


def look(server: ModelServer, **settings: object) -> MachineCheck:
    return doctor.check_model(Machine(Settings.model_validate({"llm": server.url, "model": "scripted", **settings})))


def test_the_doctor_reports_whether_the_endpoint_has_the_model(server: ModelServer) -> None:
    good, other = look(server), look(server, model="gpt-9")
    assert (good.ok, good.detail) == (True, f"{server.url} answers and has scripted")
    assert not other.ok
    assert other.fix == "--model: scripted"
    server.models = None
    assert look(server).detail == f"{server.url} answers"
    assert doctor.check_model(Machine(Settings(llm="off"))).ok


def test_the_doctor_reports_an_unreachable_endpoint(tmp_path: Path, server: ModelServer) -> None:
    words = ["doctor", "--llm", "http://127.0.0.1:9/v1", "--model", "x", "--json"]
    line = next(line for line in run_mergemill(*words, cwd=tmp_path).lines if line["name"] == "model")
    assert not line["ok"]
    assert "127.0.0.1:9" in line["detail"]


def test_the_key_is_not_an_option_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    assert Settings().llm.find_key().get_secret_value() == "sk-of-the-environment"
    monkeypatch.setenv("MERGEMILL_LLM_KEY", "sk-of-the-setting")
    settings = Settings()
    assert settings.llm.find_key().get_secret_value() == "sk-of-the-setting"
    assert "sk-of" not in f"{settings!r} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"llm": "ftp://model"}, "http"),
        ({"llm": "http://ada:secret@model/v1", "model": "m"}, "MERGEMILL_LLM_KEY"),
        ({"llm": "http://model/v1"}, "--llm needs the name of a model"),
    ],
)
def test_invalid_addresses_are_rejected(given: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Settings.model_validate(given)


def test_the_doctor_reports_a_wrong_key(server: ModelServer) -> None:
    server.listing = ScriptedFailure(status=401, message="Incorrect API key provided: sk-wrong")
    with pytest.raises(InputError) as raised:
        look(server, llm_key="sk-wrong")
    assert "MERGEMILL_LLM_KEY" in raised.value.advice
    assert "sk-wrong" not in raised.value.format_line()
