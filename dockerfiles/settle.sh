#!/bin/sh
# Leaves a clean repository of one commit in the working directory, owned by the user the tests run as, whatever the
# project's install did to it. Runs as root.
set -eu
find . -path ./.git -prune -o -name __pycache__ -type d -exec rm -rf {} +
# What an install rewrote or compiled is not part of the base commit. Blobs are taken as they are: where one goes against
# the project's own rules on line ends, git would call the file changed for ever.
mkdir -p .git/info
echo '* -text -ident -filter -working-tree-encoding' > .git/info/attributes
# Git learns the files' times first, so that it writes only those anew that changed: whoever builds by times would
# build everything again before the tests.
git update-index -q --refresh > /dev/null || true
git checkout -q -f -- .
git ls-files --others --exclude-standard --directory -z | tr '\0' '\n' | sed 's|^|/|' >> .git/info/exclude
rm -rf /tmp/* /root/.cache
left=$(git status --porcelain)
[ -z "$left" ] || { echo "$left"; exit 1; }
rm .git/info/attributes
# A build may have wanted a tag to read its version off.
if git tag | xargs -r git tag -d | grep -q .; then git prune --expire=now; fi
chown -R -h --from=0 1000:1000 .
