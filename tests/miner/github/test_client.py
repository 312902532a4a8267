"""The way to GitHub: proxies, certificates, and who may clone."""

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

from mergemill.errors import InputError, MachineError
from miner.github.api import RATE
from tests.miner.github.server import Said, data, left, serving

QUERY = f'query {{ repository(owner: "o", name: "n") {{ name }} {RATE} }}'


@pytest.fixture
def certified(tmp_path, clock):
    """An HTTPS server, and the file that says whom it may be trusted by."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    public, private = tmp_path / "ca.pem", tmp_path / "key.pem"
    public.write_bytes(certificate.public_bytes(Encoding.PEM))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    with serving(clock, context) as server:
        server.says(data())
        yield server, public


def test_the_ca_bundle_of_the_settings_is_trusted_and_no_other_server(certified, connect, monkeypatch):
    server, bundle = certified
    answer = connect(github_api=server.url, ca_bundle=bundle).graphql(QUERY)
    assert answer.data == {"repository": {"name": "n"}}
    for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MachineError, match="certificate of https://127") as caught:
        connect(github_api=server.url).graphql(QUERY)
    assert "--ca-bundle" in caught.value.advice
    assert len(server.asked) == 1


def test_a_proxy_is_asked_where_the_environment_names_one(connect, server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    server.says(data())
    connect(github_api="http://github.example/api/v3").graphql(QUERY)
    assert server.asked[0].path == "http://github.example:80/api/graphql"


def test_git_gets_a_token_that_is_still_accepted(connect, server):
    tokens = "ghp_firsttoken1111,ghp_othertoken2222"
    api = connect(github_tokens=tokens)
    assert api.git_token() is None

    def answer(asked):
        refused = asked.token == "ghp_firsttoken1111"
        return Said(401, {"message": "Bad credentials"}) if refused else Said(200, {}, left(9))

    server.says(answer)
    api.rest("/x")
    assert api.git_token() == "ghp_othertoken2222"


def test_a_server_that_moves_from_http_to_https_is_told(connect, server):
    server.says(Said(301, {}, {"Location": server.url.replace("http", "https") + "/graphql"}))
    with pytest.raises(InputError, match="https") as caught:
        connect().graphql(QUERY)
    assert "--github-api" in caught.value.advice
