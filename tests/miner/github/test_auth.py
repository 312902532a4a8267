"""Tokens and Apps: where they are read from, and that no secret is ever printed."""

from __future__ import annotations

import logging
import traceback

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from core.config import Settings
from core.errors import InputError, UsageError
from mergemill.cli.options import build_settings
from miner.github.api import RATE_LIMIT_FIELDS, GitHubApi
from miner.github.auth import load_credentials
from tests.cli import run_mergemill
from tests.github import GitHub
from tests.github.apps import ServerApp
from tests.github.handmade import make_sample_world
from tests.miner.github.scripted_server import ScriptedAnswer, build_data_answer
from tests.miner.github.test_limits import connect_api

QUERY = f'query {{ repository(owner: "ada", name: "greet") {{ nameWithOwner }} {RATE_LIMIT_FIELDS} }}'
SECRET = "ghp_verysecret9876"


def labels(**options: object) -> list[str]:
    return [credential.label for credential in load_credentials(Settings.model_validate(options).github)]


@pytest.fixture(scope="module")
def key():
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture
def app(key, tmp_path):
    """A GitHub App with its settings."""
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    path = tmp_path / "app.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    settings = {"github_app_id": "77", "github_app_key": path, "github_app_installation": 5}
    return ServerApp(77, public, {5: "ada"}, lifetime=3600), settings


def test_tokens_come_from_either_variable_each_once(monkeypatch):
    assert labels() == ["nobody (no token)"]
    monkeypatch.setenv("GITHUB_TOKEN", f" {SECRET}\n")
    assert labels() == ["the token (...9876)"]
    monkeypatch.setenv("MERGEMILL_GITHUB_TOKENS", "ghp_onetoken1111, ghp_twotoken2222,,ghp_onetoken1111")
    assert labels() == ["token 1 of 2 (...1111)", "token 2 of 2 (...2222)"]


def test_of_a_short_token_nothing_is_shown():
    assert labels(github_tokens="abc,defg") == ["token 1 of 2", "token 2 of 2"]


@pytest.mark.parametrize("bad", ["ghp_very secret", "ghp_verysecret\u00e9", "ghp_very\nsecret"])
def test_a_malformed_token_is_rejected_without_showing_it(bad):
    with pytest.raises(InputError, match="token 2 of 2") as caught:
        labels(github_tokens=["ghp_onetoken1111", bad])
    assert "very" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "line",
    [f'github_token = "{SECRET}"', f'github_tokens = {{ a = "{SECRET}" }}', f'github_api = "https://me:{SECRET}@h"'],
)
def test_the_error_about_a_misplaced_token_does_not_show_it(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mergemill.toml").write_text(line)
    with pytest.raises(UsageError) as caught:
        build_settings({})
    assert SECRET not in str(caught.value)


def test_tokens_are_no_option_and_not_in_printed_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("MERGEMILL_GITHUB_TOKENS", SECRET)
    settings = Settings()
    assert SECRET not in repr(settings) + settings.model_dump_json()
    result = run_mergemill("mine", "--help", cwd=tmp_path)
    assert result.exit_code == 0
    assert "--github-patience" in result.stdout
    assert "--github-tokens" not in result.stdout


@pytest.mark.parametrize("address", ["github.com", "ftp://x", "https://", "https://h/?a=b", "https://h:no"])
def test_a_malformed_address_is_rejected(address):
    with pytest.raises(UsageError, match="--github-api"):
        build_settings({"github_api": address})


def test_no_token_appears_in_logs_or_tracebacks(connect, server, caplog):
    caplog.set_level(logging.DEBUG)
    api = connect(github_tokens=SECRET)
    server.script_answers(
        ScriptedAnswer(200, b"{", cut=0),
        ScriptedAnswer(500),
        ScriptedAnswer(429, {}),
        build_data_answer(),
        ScriptedAnswer(401, {"message": "Bad credentials"}),
    )
    api.query_graphql(QUERY)
    with pytest.raises(InputError) as caught:
        api.query_graphql(QUERY)
    assert SECRET not in caplog.text
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in str(api.summarize_usage()) + repr(api.pool.slots)


# ---------------------------------------------------------------------------------------------------- Apps


def test_an_app_uses_and_renews_the_token_of_its_installation(tmp_path, app):
    about, options = app
    with connect_api(hub := GitHub(make_sample_world(tmp_path), app=about), "", **options) as api:
        assert api.query_graphql(QUERY).data
        assert api.fetch_repository("ada/greet").full_name == "ada/greet"
        assert len(about.issued) == 1
        about.issued[0].revoked = True
        assert api.query_graphql(QUERY).data
        assert len(about.issued) == 2
        assert api.summarize_usage()["tokens"][0]["token"] == "installation 5 of App 77"
        assert hub.violations == []


def test_an_app_is_used_beside_tokens(app):
    assert labels(github_tokens=SECRET, **app[1]) == ["the token (...9876)", "installation 5 of App 77"]


def test_an_unknown_app_is_a_bad_credential(tmp_path, app):
    (about, options), world = app, make_sample_world(tmp_path)
    for wrong in ({"github_app_installation": 6}, {"github_app_id": "78"}):
        hub, message = GitHub(world, app=about), r"does not accept installation \d of App \d+: "
        with connect_api(hub, "", **options | wrong) as api, pytest.raises(InputError, match=message):
            api.query_graphql(QUERY)


def test_incomplete_app_settings_and_a_bad_key_are_reported(tmp_path, server):
    with pytest.raises(InputError, match="github_app_key and github_app_installation"):
        labels(github_app_id="7")
    whole = {"github_app_id": "7", "github_app_key": tmp_path / "no.pem", "github_app_installation": 5}
    with pytest.raises(InputError, match="cannot read the App's key"):
        labels(**whole)
    (tmp_path / "no.pem").write_text("no key at all")
    settings = Settings.model_validate({"github_api": server.url, **whole})
    with GitHubApi(settings.github, settings.host) as api, pytest.raises(InputError, match="not a private key"):
        api.query_graphql(QUERY)
