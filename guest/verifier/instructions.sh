#!/bin/bash
# Harbor's verifier of tasks with instructions, run as root in a fresh container without network. The agent's work comes
# as a patch, and what it did as a log. The code under test runs as user mergemill and has no access to /tests and /logs.
# Where nothing can be decided no reward is written, as a missing score is not zero.
set -u
cd /
trap 'chmod 755 /logs' EXIT
mkdir -p /logs/verifier
chmod 700 /tests /logs
/opt/mergemill/checks/env/bin/python -I -B /tests/checks.pyz
