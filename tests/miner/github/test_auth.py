"""Tokens and Apps: where they come from, and that no secret is ever shown."""

from __future__ import annotations

import logging
import traceback

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from mergemill.cli.options import settings_of
from mergemill.config import Settings
from mergemill.errors import InputError, UsageError
from miner.github.api import RATE, Api
from miner.github.auth import credentials
from tests.cli import mergemill
from tests.github import GitHub
from tests.github.apps import App
from tests.github.handmade import sample_world
from tests.miner.github.server import Said, data
from tests.miner.github.test_limits import asking

QUERY = f'query {{ repository(owner: "ada", name: "greet") {{ nameWithOwner }} {RATE} }}'
SECRET = "ghp_verysecret9876"


def labels(**options: object) -> list[str]:
    return [found.label for found in credentials(Settings.model_validate(options))]


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
    return App(77, public, {5: "ada"}, lifetime=3600), settings


def test_tokens_come_from_either_variable_each_once(monkeypatch):
    assert labels() == ["nobody (no token)"]
    monkeypatch.setenv("GITHUB_TOKEN", f" {SECRET}\n")
    assert labels() == ["the token (...9876)"]
    monkeypatch.setenv("MERGEMILL_GITHUB_TOKENS", "ghp_onetoken1111, ghp_twotoken2222,,ghp_onetoken1111")
    assert labels() == ["token 1 of 2 (...1111)", "token 2 of 2 (...2222)"]


def test_of_a_short_token_nothing_is_shown():
    assert labels(github_tokens="abc,defg") == ["token 1 of 2", "token 2 of 2"]


@pytest.mark.parametrize("bad", ["ghp_very secret", "ghp_verysecret\u00e9", "ghp_very\nsecret"])
def test_what_cannot_be_a_token_is_refused_without_showing_it(bad):
    with pytest.raises(InputError, match="token 2 of 2") as caught:
        labels(github_tokens=["ghp_onetoken1111", bad])
    assert "very" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "line",
    [f'github_token = "{SECRET}"', f'github_tokens = {{ a = "{SECRET}" }}', f'github_api = "https://me:{SECRET}@h"'],
)
def test_a_misplaced_token_is_not_shown_by_the_error_about_it(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mergemill.toml").write_text(line)
    with pytest.raises(UsageError) as caught:
        settings_of({})
    assert SECRET not in str(caught.value)


def test_tokens_are_no_option_and_no_part_of_what_settings_show(tmp_path, monkeypatch):
    monkeypatch.setenv("MERGEMILL_GITHUB_TOKENS", SECRET)
    settings = Settings()
    assert SECRET not in repr(settings) + settings.model_dump_json()
    asked = mergemill("mine", "--help", cwd=tmp_path)
    assert asked.code == 0
    assert "--github-patience" in asked.out
    assert "--github-tokens" not in asked.out


@pytest.mark.parametrize("address", ["github.com", "ftp://x", "https://", "https://h/?a=b", "https://h:no"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(UsageError, match="--github-api"):
        settings_of({"github_api": address})


def test_no_token_stands_in_logs_or_tracebacks_whatever_goes_wrong(connect, server, caplog):
    caplog.set_level(logging.DEBUG)
    api = connect(github_tokens=SECRET)
    server.says(Said(200, b"{", cut=0), Said(500), Said(429, {}), data(), Said(401, {"message": "Bad credentials"}))
    api.graphql(QUERY)
    with pytest.raises(InputError) as caught:
        api.graphql(QUERY)
    assert SECRET not in caplog.text
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert SECRET not in str(api.usage()) + repr(api.pool.seats)


# ---------------------------------------------------------------------------------------------------- Apps


def test_an_app_asks_in_the_name_of_its_installation_and_renews_its_token(tmp_path, app):
    about, options = app
    with asking(hub := GitHub(sample_world(tmp_path), app=about), "", **options) as api:
        assert api.graphql(QUERY).data
        assert api.repository("ada/greet").name == "ada/greet"
        assert len(about.issued) == 1
        about.issued[0].revoked = True
        assert api.graphql(QUERY).data
        assert len(about.issued) == 2
        assert api.usage()["tokens"][0]["token"] == "installation 5 of App 77"
        assert hub.violations == []


def test_an_app_stands_beside_tokens(app):
    assert labels(github_tokens=SECRET, **app[1]) == ["the token (...9876)", "installation 5 of App 77"]


def test_an_app_that_github_does_not_know_is_a_bad_credential(tmp_path, app):
    (about, options), world = app, sample_world(tmp_path)
    for wrong in ({"github_app_installation": 6}, {"github_app_id": "78"}):
        hub, refused = GitHub(world, app=about), r"does not accept installation \d of App \d+: "
        with asking(hub, "", **options | wrong) as api, pytest.raises(InputError, match=refused):
            api.graphql(QUERY)


def test_half_an_app_and_a_key_that_is_none_are_told(tmp_path, server):
    with pytest.raises(InputError, match="github_app_key and github_app_installation"):
        labels(github_app_id="7")
    whole = {"github_app_id": "7", "github_app_key": tmp_path / "no.pem", "github_app_installation": 5}
    with pytest.raises(InputError, match="cannot read the App's key"):
        labels(**whole)
    (tmp_path / "no.pem").write_text("no key at all")
    settings = Settings.model_validate({"github_api": server.url, **whole})
    with Api(settings) as api, pytest.raises(InputError, match="not a private key"):
        api.graphql(QUERY)
