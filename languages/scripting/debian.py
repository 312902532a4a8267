"""Debian's packages in place of a language's own registry, where that cannot be reached or does not build.

The registry's step fails with one plain line when the registry is out of reach while Debian's mirror answers; the
skill `registry-out-of-reach` turns on the switch of that line, and the same names are looked up among Debian's.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from languages import apt
from languages.apt import CLEAN, INSTALL, UPDATE
from languages.draft import Draft

DEBIAN_PACKAGES = "debian-packages"
SWITCH = "packages come from Debian as far as it has them, in Debian's versions, instead of the language's registry"
OUT_OF_REACH = (
    "could not resolve|couldn.t resolve|could not reach host|could not find host|name resolution|getaddrinfo|nxdomain|"
    "name or service not known|no such host|connection refused|failed to connect|couldn.t connect|timed out|"
    "curl error (6|7|28)|probably indicates you are offline"
)
"""What package managers print when there is no way to their registry (grep -iE)."""


def debian_packages(draft: Draft) -> Draft:
    """Debian's packages instead of the registry's: it may be out of reach, or its packages do not build any more."""
    return replace(draft, switches=draft.switches | {DEBIAN_PACKAGES})


def toolchain(*packages: str) -> str:
    """Shell lines that lay a Debian release's own version of a language on a plain base."""
    return apt.install(packages)


def from_registry(registry: str, command: str) -> str:
    """A step that installs from a registry; says in one line when that is out of reach while Debian's mirror is not.

    Args:
        registry: its name for people, such as `RubyGems`.
        command: shell lines that fail when something could not be installed.
    """
    log = "/tmp/registry.log"  # noqa: S108 - in the box, removed
    return (
        f"if {{ {command}; }} > {log} 2>&1; then tail -n 3 {log}; rm -f {log}; else\n"
        f"  if grep -qiE {shlex.quote(OUT_OF_REACH)} {log} && {{ {UPDATE} > /dev/null 2>&1\n"
        "    ls /var/lib/apt/lists/*Packages* > /dev/null 2>&1; }; then\n"
        f"    echo '{registry} is out of reach from here, Debian is not: switch {DEBIAN_PACKAGES}'\n"
        f"  else tail -n 60 {log}; fi; exit 1; fi"
    )


def from_debian(wanted: Iterable[tuple[str, Sequence[str]]], always: Sequence[str] = ()) -> str:
    """A step that installs, for each (name, packages that may carry it), the first package that the release has.

    What it has none for is told in one line and left out: whether that matters the tests say. `always` must be there.
    """
    rows = " ".join(shlex.quote(f"{name}={' '.join(packages)}") for name, packages in wanted)
    return (
        f"{UPDATE} && apt-cache --no-generate pkgnames | sort > /tmp/debian.txt\n"
        f"packages={shlex.quote(' '.join(always))} missing=\n"
        f"for row in {rows}; do found=\n"
        '  for one in ${row#*=}; do grep -qxF -- "$one" /tmp/debian.txt && found=$one && break; done\n'
        '  [ -n "$found" ] && packages="$packages $found" || missing="$missing ${row%%=*}"\n'
        "done\n"
        '[ -z "$missing" ] || echo "Debian has nothing for:$missing"\n'
        f'[ -z "$packages" ] || {INSTALL} $packages > /dev/null 2>&1 || '
        f'for one in $packages; do {INSTALL} $one > /dev/null 2>&1 || echo "$one cannot be installed"; done\n'
        f"{CLEAN} /tmp/debian.txt"
    )
