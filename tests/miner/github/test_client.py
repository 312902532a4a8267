"""The connection to GitHub: proxies, certificates, and tokens for git."""

from __future__ import annotations

import datetime as dt
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from core.errors import InputError, MachineError
from miner.github.api import RATE_LIMIT_FIELDS
from tests.miner.github.scripted_server import ScriptedAnswer, build_data_answer, build_rate_headers, run_server

QUERY = f'query {{ repository(owner: "o", name: "n") {{ name }} {RATE_LIMIT_FIELDS} }}'


@pytest.fixture
def https_server(tmp_path, clock):
    """Run an HTTPS server; yield it with its CA certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, private = tmp_path / "ca.pem", tmp_path / "key.pem"
    public.write_bytes(certificate.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    with run_server(clock, context) as server:
        server.script_answers(build_data_answer())
        yield server, public


def test_the_ca_bundle_of_the_settings_is_trusted_and_no_other_server(https_server, connect, monkeypatch):
    server, bundle = https_server
    answer = connect(github_api=server.url, ca_bundle=bundle).query_graphql(QUERY)
    assert answer.data == {"repository": {"name": "n"}}
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MachineError, match="certificate of https://127") as caught:
        connect(github_api=server.url).query_graphql(QUERY)
    assert "--ca-bundle" in caught.value.advice
    assert len(server.requests) == 1


def test_the_proxy_of_the_environment_is_used(connect, server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    server.script_answers(build_data_answer())
    connect(github_api="http://github.example/api/v3").query_graphql(QUERY)
    assert server.requests[0].path == "http://github.example:80/api/graphql"


def test_git_gets_a_token_that_is_still_accepted(connect, server):
    tokens = "ghp_firsttoken1111,ghp_othertoken2222"
    api = connect(github_tokens=tokens)
    assert api.find_git_token() is None

    def answer(request):
        is_rejected = request.token == "ghp_firsttoken1111"
        return (
            ScriptedAnswer(401, {"message": "Bad credentials"})
            if is_rejected
            else ScriptedAnswer(200, {}, build_rate_headers(9))
        )

    server.script_answers(answer)
    api.get_rest("/x")
    assert api.find_git_token() == "ghp_othertoken2222"


def test_a_redirect_from_http_to_https_is_reported(connect, server):
    server.script_answers(ScriptedAnswer(301, {}, {"Location": server.url.replace("http", "https") + "/graphql"}))
    with pytest.raises(InputError, match="https") as caught:
        connect().query_graphql(QUERY)
    assert "--github-api" in caught.value.advice
