#!/bin/bash
# Verifier of a task that requires a structure: the check of the agent's tree, then the tests. A tree with another
# structure, or one that cannot be checked, earns 0 without a test run; a patch that does not apply is left to the tests.
set -u
cd /
patch=/logs/artifacts/model.patch
check_structure() {  # copies HEAD, applies the patch to the copy and checks that
    local tree workdir
    [ -f "$patch" ] && [ ! -L "$patch" ] || return 0
    [ -f /tests/apply_patch.py ] && [ -f /tests/structure_check.py ] && [ -f /tests/rules.json ] || return 2
    workdir="$(python3 -I -S -c 'import json; print(json.load(open("/tests/task.json"))["workdir"])')" || return 2
    tree="$(mktemp -d)" || return 2
    mkdir "$tree/files" || return 2
    cd "$workdir" || return 2
    export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1
    GIT_DIR=.git GIT_INDEX_FILE="$tree/index" git read-tree HEAD &&
        GIT_DIR=.git GIT_INDEX_FILE="$tree/index" git checkout-index -q -a -f --prefix="$tree/files/" || return 2
    cd "$tree/files" || return 2
    export GIT_CEILING_DIRECTORIES="$tree"
    python3 -I -S -B /tests/apply_patch.py "$patch" > /dev/null || return 0
    timeout -s KILL 300 python3 -I -S /tests/structure_check.py /tests/rules.json "$tree/files"
    local status=$?
    rm -rf "$tree"
    [ $status = 0 ]
}
(check_structure)
status=$?
if [ $status = 1 ]; then
    mkdir -p /logs/verifier
    echo '{"reward": 0, "structure": 0}' > /logs/verifier/reward.json
    exit 1
elif [ $status != 0 ]; then
    echo "MERGEMILL_INFRASTRUCTURE_ERROR: the structure of the tree cannot be checked"
    exit 97
fi
exec bash /tests/tests.sh
