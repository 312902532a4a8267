"""The emulator, read by the clients that the product uses: PyGithub and git."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import github
import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.github import AccessToken, GitHub, World
from tests.github.apps import ServerApp
from tests.github.handmade import make_sample_world


def make_reader(hub: GitHub, *, enterprise: bool = False) -> github.Github:
    url = hub.enterprise_url if enterprise else hub.url
    return github.Github(auth=github.Auth.Token("ghp_reader"), base_url=url, per_page=100, retry=None)


def git(*arguments: str | Path) -> str:
    alone = {"PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0", "HOME": "/nonexistent"}
    done = subprocess.run(["git", *arguments], check=False, capture_output=True, text=True, env=alone)
    return done.stdout if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("enterprise", [False, True])
def test_pygithub_reads_repository_pull_requests_and_issues(world: World, *, enterprise: bool) -> None:
    made = world.find("ada/lib")
    assert made
    with GitHub(world) as hub, make_reader(hub, enterprise=enterprise) as hub_client:
        repository = hub_client.get_repo("ada/lib")
        pulls = list(repository.get_pulls(state="all", sort="created", direction="asc"))
        issues = list(repository.get_issues(state="all"))
        pull = repository.get_pull(pulls[0].number)
        assert [p.number for p in pulls] == sorted(made.pulls)
        assert len(issues) == len(made.pulls) + len(made.issues)
        assert pull.changed_files == made.pulls[pull.number].changed_files
        assert [p.user and p.user.login for p in pulls] == [
            p.author and p.author.rest_login for _, p in sorted(made.pulls.items())
        ]
        assert hub.violations == []


def test_pygithub_queries_graphql_at_both_addresses(tmp_path: Path) -> None:
    query = """query($n: Int!) { repository(owner: "ada", name: "greet") { pullRequest(number: $n) { title } } }"""
    with GitHub(make_sample_world(tmp_path)) as hub:
        for enterprise in (False, True):
            with make_reader(hub, enterprise=enterprise) as hub_client:
                _, result = hub_client.requester.graphql_query(query, {"n": 2})
                assert result["data"]["repository"]["pullRequest"]["title"] == "Strip names"
                with pytest.raises(github.GithubException) as refused:
                    hub_client.requester.graphql_query(query, {"n": 77})
                assert refused.value.data["errors"][0]["type"] == "NOT_FOUND"


def test_git_clones_fetches_and_follows_a_rename(tmp_path: Path, world: World) -> None:
    made = world.find("ada/lib")
    assert made
    with GitHub(world) as hub:
        assert git("clone", "-q", "--mirror", f"{hub.url}/ada/lib.git", tmp_path / "copy") == ""
        refs = git("-C", tmp_path / "copy", "for-each-ref", "--format=%(refname)").split()
        assert sum(ref.startswith("refs/pull/") for ref in refs) == len(made.pulls)
        assert git("-C", tmp_path / "copy", "fetch", "-q") == ""
        assert git("clone", "-q", "--bare", "--filter=blob:none", f"{hub.url}/ada/lib", tmp_path / "part") == ""
        before = made.owner, made.name, list(made.old_names)
        world.rename("ada/lib", "ada/core")
        assert git("ls-remote", f"{hub.url}/ada/lib.git", "HEAD").endswith("HEAD\n")
        made.owner, made.name, made.old_names = before


def test_git_needs_a_token_for_a_private_repository(tmp_path: Path) -> None:
    world = make_sample_world(tmp_path)
    repository = world.find("ada/greet")
    assert repository
    repository.private = True
    with GitHub(world, tokens=["ghp_reader", AccessToken("ghp_owner", private=frozenset({"ada/greet"}))]) as hub:
        host = hub.url.removeprefix("http://")
        assert "HEAD" in git("ls-remote", f"http://x-access-token:ghp_owner@{host}/ada/greet.git")
        assert "not found" in git("ls-remote", f"http://x-access-token:ghp_reader@{host}/ada/greet.git")
        assert "could not read Username" in git("ls-remote", f"{hub.url}/ada/greet.git")


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def make_app(key: rsa.RSAPrivateKey, lifetime: float = 3600) -> ServerApp:
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return ServerApp(77, public.decode(), {5: "ada"}, private=frozenset({"ada/greet"}), lifetime=lifetime)


def test_an_apps_installation_reads_a_private_repository_until_its_token_expires(
    tmp_path: Path, key: rsa.RSAPrivateKey
) -> None:
    world, app = make_sample_world(tmp_path), make_app(key)
    repository = world.find("ada/greet")
    assert repository
    repository.private = True
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    with GitHub(world, app=app) as hub:
        auth = github.Auth.AppAuth(77, pem).get_installation_auth(5)
        with github.Github(auth=auth, base_url=hub.url, retry=None) as hub_client:
            assert hub_client.get_repo("ada/greet").private
            hub.clock.advance(3601)
            with pytest.raises(github.BadCredentialsException):
                hub_client.get_repo("ada/greet")
        assert [token.installation for token in app.issued] == [5]


@pytest.mark.parametrize("wrong", ["expired", "other-app", "other-key", "no-jwt"])
def test_a_wrong_jwt_gets_no_token(tmp_path: Path, key: rsa.RSAPrivateKey, wrong: str) -> None:
    now = int(time.time())
    claims = {
        "iat": now - 60,
        "exp": now + (-10 if wrong == "expired" else 300),
        "iss": "9" if wrong == "other-app" else "77",
    }
    signer = rsa.generate_private_key(public_exponent=65537, key_size=2048) if wrong == "other-key" else key
    token = "nonsense" if wrong == "no-jwt" else jwt.encode(claims, signer, algorithm="RS256")
    with GitHub(make_sample_world(tmp_path), app=make_app(key)) as hub:
        answer = httpx.post(
            f"{hub.url}/app/installations/5/access_tokens", headers={"Authorization": f"Bearer {token}"}
        )
    assert answer.status_code == 401
