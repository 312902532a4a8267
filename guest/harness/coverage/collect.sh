# Collects the lines of the tree that a run executes. The shell that starts the evaluation sources this file as root. It
# installs collectors beside the interpreters of this container, so the evaluation script is the same with and without.
# Needs $run_dir (root's folder) and $workdir. `write_coverage FILE` then writes sorted `path:line` and `path:first-last`.
covered="$run_dir/covered"
install -d -m 700 -o mergemill -g mergemill "$covered"

for packages in /opt/venv/lib/python*/site-packages; do
    [ -d "$packages" ] || continue
    install -m 644 "$run_dir/_mergemill_coverage.py" "$packages"
    echo "import _mergemill_coverage; _mergemill_coverage.start('$workdir', '$covered/lines')" \
        > "$packages/_mergemill_coverage.pth"
done

wrap_program() {  # NAME BODY: put a program of that name before the real one on PATH; BODY calls the real one as $real
    local real
    real="$(command -v "$1")" && real="$(readlink -f "$real")" || return 0
    [ ! -e "/opt/venv/bin/$1" ] && mkdir -p /opt/venv/bin || return 0
    printf '#!/bin/bash\nreal=%q covered=%q\n%s\n' "$real" "$covered" "$2" > "/opt/venv/bin/$1"
    chmod 755 "/opt/venv/bin/$1"
}
wrap_program go '[ "$1" != test ] || set -- test "-coverprofile=$covered/$$-$RANDOM.go" "${@:2}"; exec "$real" "$@"'
wrap_program node 'export NODE_V8_COVERAGE="$covered"; exec "$real" "$@"'

write_coverage() {
    if [ -f "$covered/lines" ] && [ ! -L "$covered/lines" ]; then
        head -c 256M "$covered/lines" | LC_ALL=C sort -u | head -c 32M > "$1"
    elif [ -n "$(ls "$covered")" ]; then
        setpriv --reuid=mergemill --regid=mergemill --clear-groups --no-new-privs --inh-caps=-all \
            env -i PATH=/usr/bin:/bin LANG=C.UTF-8 timeout -s KILL 120 \
            /usr/bin/python3 -I -S -B - "$workdir" "$covered" < "$run_dir/profiles.py" | head -c 32M > "$1"
        [ -s "$1" ] || rm -f -- "$1"
    fi
}
