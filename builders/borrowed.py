"""What a build is given of this machine and no layer keeps: CA bundle, proxies, package indexes."""

from __future__ import annotations

from mergemill.config import Settings

CA_FILE = "/run/mergemill/ca.pem"
CA_NAMES = (
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
    "NPM_CONFIG_CAFILE", "CARGO_HTTP_CAINFO", "BUNDLE_SSL_CA_CERT", "DENO_CERT",
)  # fmt: skip
"""Variables that name a CA bundle to the tools that fetch packages. Java reads none: see languages/java."""


def borrowed(settings: Settings) -> tuple[dict[str, bytes], dict[str, str]]:
    """(files by path in the box, variables)."""
    bundle = settings.found_ca_bundle()
    files = {CA_FILE: bundle.read_bytes()} if bundle else {}
    env = dict.fromkeys(CA_NAMES, CA_FILE) if bundle else {}
    inherited = settings.inherited_environment()
    # uv has names of its own for what pip calls index.
    if "PIP_INDEX_URL" in inherited:
        inherited.setdefault("UV_DEFAULT_INDEX", inherited["PIP_INDEX_URL"])
    return files, env | inherited
