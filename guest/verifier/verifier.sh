#!/bin/bash
# Harbor's verifier for kinds with an oracle of their own, run as root in a fresh container without network. The code
# under test runs as user mergemill and has no access to /tests and /logs.
set -u
cd /
trap 'chmod 755 /logs' EXIT
mkdir -p /logs/verifier
chmod 700 /tests /logs
python3 -I -S -B /tests/verifier.pyz
