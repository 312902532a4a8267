#!/bin/sh
# Leaves a clean repository of one commit in the working directory, owned by the user the tests run as, whatever the
# project's install did to it. Runs as root.
set -eu
find . -path ./.git -prune -o -name __pycache__ -type d -exec rm -rf {} +
# What an install rewrote or compiled is not part of the base commit.
git checkout -q -f -- .
mkdir -p .git/info
git ls-files --others --exclude-standard --directory -z | tr '\0' '\n' | sed 's|^|/|' >> .git/info/exclude
rm -rf .git/info/attributes /tmp/* /root/.cache
left=$(git status --porcelain)
[ -z "$left" ] || { echo "$left"; exit 1; }
chown -R -h --from=0 1000:1000 .
