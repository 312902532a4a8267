"""Settings of this machine that builds need and no layer keeps: CA bundle, proxies, package indexes."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Mapping
from functools import cache

from core.settings.machine import HostSettings

CA_FILE = "/run/mergemill/ca.pem"
JAVA_CA_FILE = "/run/mergemill/ca.jks"
CA_NAMES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE",
    "CARGO_HTTP_CAINFO",
    "BUNDLE_SSL_CA_CERT",
    "DENO_CERT",
)
"""Variables that name a CA bundle to tools that fetch packages; the JVM reads a key store instead."""


JAVA_OPTIONS = "JAVA_TOOL_OPTIONS"
"""Options of every JVM that is started."""


def collect_host_settings(host: HostSettings) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return (content by path in the container, variables)."""
    bundle = host.find_ca_bundle()
    files = {CA_FILE: bundle.read_bytes()} if bundle else {}
    env = dict.fromkeys(CA_NAMES, CA_FILE) if bundle else {}
    if bundle:
        files[JAVA_CA_FILE] = build_java_trust_store(files[CA_FILE])
        env[JAVA_OPTIONS] = f"-Djavax.net.ssl.trustStore={JAVA_CA_FILE}"
    inherited = host.inherit_environment()
    # uv does not read pip's variable for the package index.
    if "PIP_INDEX_URL" in inherited:
        inherited.setdefault("UV_DEFAULT_INDEX", inherited["PIP_INDEX_URL"])
    return files, env | inherited


def merge_env(host: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the host's variables, overridden by the plan's own; JVM options of both are joined."""
    options = " ".join(variables[JAVA_OPTIONS] for variables in (host, own) if JAVA_OPTIONS in variables)
    return {**host, **own, **({JAVA_OPTIONS: options} if options else {})}


_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@cache
def build_java_trust_store(bundle: bytes) -> bytes:
    """Return the certificates of a PEM bundle as a Java key store (JKS, version 2) with Java's default password."""
    entries = [ssl.PEM_cert_to_DER_cert(pem.decode("ascii")) for pem in _CERTIFICATE.findall(bundle)]
    body = bytes.fromhex("feedfeed00000002") + len(entries).to_bytes(4, "big")
    for number, der in enumerate(entries):
        alias, when = _encode_java_text(f"ca{number}"), bytes(8)
        body += (2).to_bytes(4, "big") + alias + when + _encode_java_text("X.509") + len(der).to_bytes(4, "big") + der
    password = "changeit".encode("utf-16-be")
    return body + hashlib.sha1(password + b"Mighty Aphrodite" + body, usedforsecurity=False).digest()


def _encode_java_text(text: str) -> bytes:
    return len(text).to_bytes(2, "big") + text.encode()
