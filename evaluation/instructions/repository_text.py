"""A text that is appended to a file of an agent's repository and is no part of the difference that the agent makes.

The text is in the working tree alone: neither the agent's commits nor the base tree have it. As a difference is made,
the text is cut out of the file again, so that the agent's own edits of the file are kept. Where the agent edited the
text itself, those lines of it that are left are cut out.
"""

from __future__ import annotations

import shlex

_ADD = r"""set -e
cd {workdir}
file=$(readlink -f -- {path})
case $file in "$(pwd -P)"/*) ;; *) file=$(pwd -P)/{path} ;; esac
name=${{file#"$(pwd -P)"/}}
if [ -e "$file" ]; then
    [ -z "$(tail -c 1 -- "$file")" ] || printf '\n' >{folder}/block
    {{ printf '\n'; cat {folder}/text; }} >>{folder}/block
else
    mkdir -p "${{file%/*}}"
    cp {folder}/text {folder}/block
    mkdir -p .git/info
    git ls-files --error-unmatch -- "$name" >/dev/null 2>&1 || printf '/%s\n' "$name" >>.git/info/exclude
fi
grep -v '^[[:space:]]*$' {folder}/text >{folder}/lines
printf %s "$name" >{folder}/name
cat {folder}/block >>"$file"
cat -- "$file"
"""
_CUT = r"""name=$(cat {folder}/name)
entry=
[ ! -f "$name" ] || [ -L "$name" ] || entry=$(git ls-files -s -- "$name")
case $entry in 100*)
    content=$(cat -- "$name"; printf x) && content=${{content%x}} && block=$(cat {folder}/block; printf x) &&
    block=${{block%x}} && case $content in
        *"$block"*) printf %s "${{content/"$block"/}}" >{folder}/kept ;;
        *) grep -vxF -f {folder}/lines -- "$name" >{folder}/kept || [ $? = 1 ] ;;
    esac &&
    if [ -s {folder}/kept ] || git cat-file -e "HEAD:$name" 2>/dev/null; then
        blob=$(git hash-object -w --path="$name" {folder}/kept) &&
        git update-index --cacheinfo "${{entry%% *}},$blob,$name"
    else
        git update-index --force-remove -- "$name"
    fi ;;
esac"""


def render_text(text: str) -> bytes:
    """Return the content of the file `text` of the folder."""
    return f"{text.strip()}\n".encode()


def render_addition(workdir: str, path: str, folder: str) -> str:
    """Return the Bash that appends the file `text` of a folder to a file of the repository, which may be missing.

    It prints what the file has then.

    Args:
        workdir: root of the repository.
        path: path of the file there. Where it is a link, the file that it leads to is appended to.
        folder: folder of the file `text`, in which the facts for `render_cut` are written.
    """
    return _ADD.format(workdir=shlex.quote(workdir), path=shlex.quote(path), folder=folder)


def render_cut(folder: str) -> str:
    """Return the Bash that cuts the text out of the file in git's index, after the tree was added to it.

    It changes nothing where no text was appended.
    """
    return f"if [ -e {folder}/name ]; then\n{_CUT.format(folder=folder)}\nfi"
