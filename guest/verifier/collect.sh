out=/logs/artifacts/model.patch; rm -rf -- "$out"; run="timeout -k 5 100 env -i PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_ATTR_NOSYSTEM=1"
# Without rights, and without configuration, hooks, attributes, filters and index of a repository that the agent can change.
if [ "$(id -u)" = 0 ] && id mergemill > /dev/null 2>&1; then
    chown -R -h --from=0 mergemill:mergemill /testbed
    run="setpriv --reuid=mergemill --regid=mergemill --clear-groups --no-new-privs --inh-caps=-all $run"
fi
$run sh -c '
cd /testbed && made="$(mktemp -d)" || exit
trap "rm -rf $made" EXIT
export HOME="$made" GIT_DIR="$made/git" GIT_WORK_TREE=/testbed
of=.git; [ ! -f .git ] || of="$(sed -n "s/^gitdir: //p" .git | head -n 1)"
objects="$(cd "$of/objects" && pwd)" && mkdir -p "$GIT_DIR/info" "$GIT_DIR/refs" "$GIT_DIR/objects/info" || exit
printf "[core]\nrepositoryformatversion = 0\nbare = false\n" > "$GIT_DIR/config"
echo "* -text -ident -filter -working-tree-encoding" > "$GIT_DIR/info/attributes"
echo "$objects" > "$GIT_DIR/objects/info/alternates"
echo "ref: refs/heads/main" > "$GIT_DIR/HEAD"
[ ! -f "$of/info/exclude" ] || cp "$of/info/exclude" "$GIT_DIR/info"
base="$(find "$of/HEAD" "$of/packed-refs" "$of/refs" -type f -exec cat {} + 2> /dev/null | grep -oE "^[0-9a-f]{40}" | git rev-list --ignore-missing --max-parents=0 --stdin | tail -n 1)"
[ -n "$base" ] && git read-tree "$base" || exit
find . -mindepth 2 -name .git -prune -exec rm -rf {} +
git add -A --ignore-errors -- . ":(exclude,glob)**/__pycache__/**" ":(exclude,glob)**/.pytest_cache/**" || git add -u --ignore-errors -- .
git diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames "$base" > "$made/patch" && cat "$made/patch"
' > "$out" || : > "$out"
