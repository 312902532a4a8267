#!/bin/bash
# Harbor's verifier, run as root in a fresh container of the task's image without network. The agent's work comes as a
# patch. The code under test runs as user mergemill and has no access to /tests and /logs. When the evaluation itself
# fails no reward is written, as a missing score is not zero.
set -u
cd /
trap 'chmod 755 /logs' EXIT
mkdir -p /logs/verifier
chmod 700 /tests /logs
patch=/logs/artifacts/model.patch
if [ -e "$patch" ] || [ -L "$patch" ]; then
    [ -f "$patch" ] && [ ! -L "$patch" ] || patch=/dev/null  # an agent's process put it there: nothing is handed in
else
    echo "MERGEMILL_INFRASTRUCTURE_ERROR: the agent's work was not collected to $patch"
    exit 97
fi
python3 -I -S /tests/grade.py --patch "$patch" --reward /logs/verifier/reward.json
