#!/bin/sh
# Restores a clean repository of one commit in the working directory, owned by the test user, after the project's
# install. Runs as root.
set -eu
find . -path ./.git -prune -o -name __pycache__ -type d -exec rm -rf {} +
# Files that the install rewrote or compiled are not part of the base commit. Attributes are disabled: git would report a
# blob that violates the project's own line-ending rules as changed after every checkout.
mkdir -p .git/info
echo '* -text -ident -filter -working-tree-encoding' > .git/info/attributes
# The index is refreshed first, so that git rewrites only changed files: build tools that compare times would otherwise
# rebuild everything before the tests.
git update-index -q --refresh > /dev/null || true
git checkout -q -f -- .
git ls-files --others --exclude-standard --directory -z | tr '\0' '\n' | sed 's|^|/|' >> .git/info/exclude
rm -rf /tmp/* /root/.cache
left=$(git status --porcelain)
[ -z "$left" ] || { echo "$left"; exit 1; }
rm .git/info/attributes
# A build step may have added a tag from which the project derives its version.
if git tag | xargs -r git tag -d | grep -q .; then git prune --expire=now; fi
chown -R -h --from=0 1000:1000 .
