"""Debian packages as a substitute for a language's registry that is unreachable or whose packages do not build.

If the registry is unreachable while Debian's mirror is not, the registry step fails with a fixed message. The skill
`registry-out-of-reach` matches that message and enables the switch, and the same names are looked up in Debian.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace

from languages import apt
from languages.apt import CLEAN, INSTALL, UPDATE
from languages.draft import PlanDraft

DEBIAN_PACKAGES = "debian-packages"
SWITCH_DESCRIPTION = (
    "packages come from Debian, as far as it has them and in its versions, instead of the language's registry"
)
DEBIAN_SUBSTITUTE = f"Debian is not: switch {DEBIAN_PACKAGES}"
"""End of the message that the skill `registry-out-of-reach` matches."""
REGISTRY_UNREACHABLE = (
    "could not resolve|couldn.t resolve|could not reach host|could not find host|name resolution|getaddrinfo|nxdomain|"
    "name or service not known|no such host|connection refused|failed to connect|couldn.t connect|timed out|"
    "curl error (6|7|28)|probably indicates you are offline"
)
"""Messages of package managers that cannot reach their registry (grep -iE)."""


def use_debian_packages(draft: PlanDraft) -> PlanDraft:
    """Use Debian packages: the registry may be unreachable, or its packages may no longer build."""
    return replace(draft, switches=draft.switches | {DEBIAN_PACKAGES})


def render_toolchain(*packages: str) -> str:
    """Return the shell commands that install a Debian release's own version of a language."""
    return apt.render_install(packages)


def render_registry_install(registry: str, command: str, substitute: str = DEBIAN_SUBSTITUTE) -> str:
    """Return a step that installs from a registry and reports a registry that is unreachable while Debian is not.

    Args:
        registry: display name, such as `RubyGems`.
        command: shell commands that fail if something could not be installed.
        substitute: end of the message that reports it.
    """
    log = "/tmp/registry.log"  # noqa: S108 - in the container, removed
    return (
        f"if {{ {command}; }} > {log} 2>&1; then tail -n 3 {log}; rm -f {log}; else\n"
        f"  if grep -qiE {shlex.quote(REGISTRY_UNREACHABLE)} {log} && {{ {UPDATE} > /dev/null 2>&1\n"
        "    ls /var/lib/apt/lists/*Packages* > /dev/null 2>&1; }; then\n"
        f"    echo {shlex.quote(f'{registry} is out of reach from here, {substitute}')}\n"
        f"  else tail -n 60 {log}; fi; exit 1; fi"
    )


def render_debian_install(candidates: Iterable[tuple[str, Sequence[str]]], always: Sequence[str] = ()) -> str:
    """Return a step that installs, for each (name, candidate packages), the first that the release has.

    Names without a package are reported and skipped: the tests show whether they matter. `always` must be installable.
    """
    rows = " ".join(shlex.quote(f"{name}={' '.join(packages)}") for name, packages in candidates)
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
