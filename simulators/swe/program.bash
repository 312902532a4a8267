#!/bin/bash
# Stands in the place of a program that cannot run here: hands the command line over, and prints what comes back.
#
# Both pipes lie in a folder that is mounted read-only. One command is answered at a time (flock). A request is
# `ID CWD ARGUMENTS INPUT CONTEXT`, an answer `ID CODE STDOUT STDERR FILES`; all fields but ID and CODE are base64, `-`
# where empty. FILES has a line `PATH CONTENT` for each file that the program writes, or `PATH !` for one it removes.
exchange=/run/exchange
encode() { local text; text=$(base64 -w0); printf '%s' "${text:--}"; }
decode() { [ "$1" = - ] || base64 -d <<< "$1"; }

input=-
reads_input=$([ $# -eq 0 ] && echo yes)
for word in "$@"; do [ "$word" = - ] && reads_input=yes; done
if [ -n "$reads_input" ] && { [ -p /dev/stdin ] || [ -f /dev/stdin ]; }; then
    input=$(head -c 262144 | encode)
fi
arguments=$(printf '%s\0' "${0##*/}" "$@" | encode)
folder=$(pwd | encode)
context=$(head -c 65536 "/proc/$PPID/cmdline" 2>/dev/null | encode)
id=$$-$RANDOM$RANDOM

exec 9< "$exchange/lock"
flock 9
exec 8<> "$exchange/answers"
printf '\n%s %s %s %s %s\n' "$id" "$folder" "$arguments" "$input" "$context" > "$exchange/requests"
while read -r -u 8 got code output errors files; do
    [ "$got" = "$id" ] && break
done
exec 9<&- 8>&-

decode "$files" | while read -r path content; do
    path=$(decode "$path")
    if [ "$content" = '!' ]; then
        rm -f -- "$path"
    else
        mkdir -p -- "$(dirname -- "$path")" && decode "$content" > "$path"
    fi
done
decode "$errors" >&2
decode "$output"
exit "$code"
