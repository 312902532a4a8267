"""Version of the harness in an evaluation script: a hash of everything in it that does not come from the task."""

from __future__ import annotations

import hashlib
import re

from languages.registry import list_own_version_variables

_WORD = r"(?:[\w@%+=:,./-]+|'[^'\n]*'(?:\"'\"'[^'\n]*')*|\$'(?:[^'\\\n]|\\.)*')"
"""Word of bash that is data: plain, or quoted as `shlex.quote` and `evaluation.script.render` quote it."""
_TASK_PARTS = re.compile(
    rf"""^base64\ -d\ >\ "\$report/(?:config|test)\.patch".*\n(?:[A-Za-z0-9+/=]*\n)*END_OF_PATCH\n  # patches
      | ^(?:patched|reconfigured|files)=\((?:\ +{_WORD})*\ *\)\n                              # paths, and files to run
      | ^folder={_WORD}\n                                                                  # place of the canaries
      | ^[ ]{{4}}file="\$folder"/[\w./{{}}$"'-]*\n                                             # their names
      | (?<=[ ])(?:{"|".join(list_own_version_variables())})=[\w.+-]+[ ]                         # the project's version
    """,
    re.MULTILINE | re.VERBOSE,
)
"""Parts of `evaluate.sh.j2` that are filled from a task and not from its plan. Only data is taken for a part."""


def compute_harness_version(script: str) -> str:
    """Return the version of the harness in a script of `evaluation.script.render`.

    Scripts of two tasks have the same version where harness, runner, canaries and fixed settings are the same. A part
    of a task that is not recognised gives the task a version of its own.
    """
    return hashlib.sha256(_TASK_PARTS.sub("", script).encode()).hexdigest()
