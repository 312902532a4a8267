"""Edits of the fixed tree on which tests are run: omitted hunks, mutants, variants, the fault in another form.

All are patches to the gold tree. Nothing is executed here: whether tests detect an edit is decided from runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evaluation.edits.encode import ENCODED, encode_program
from evaluation.edits.fixed_files import Block, FixedFile
from evaluation.edits.whitespace import respace
from guest.scoring.submitted_tests import OMITTED_HUNK, REWRITTEN_FAULT
from mutation import (
    Mutation,
    build_patch,
    generate_mutants,
    generate_variants,
    has_same_code,
    select_diverse,
)
from mutation.lines import split_lines

RESPACED = "respaced"
LINE_ONLY_OPERATORS = ("remark-added", "blank-line-added", "step-added")
"""Rewrites that leave the lines of the fault unchanged."""
MAX_OMITTED_HUNKS = 4
"""Mutants that omit a hunk of the fix."""
NEAR = 3
"""Lines around the fix that are mutated where its own lines give few mutants."""


@dataclass(frozen=True, kw_only=True)
class EditDraft:
    """An edit of the gold tree that has not been evaluated; fields as in `taskdb.records.oracles.CodeEdit`."""

    operator: str
    path: str
    line: int
    last_line: int
    """Of an omitted hunk, else `line`."""
    detail: str
    patch: bytes


# ---------------------------------------------------------------------------------------------------------- drafts


def draft_mutants(files: Sequence[FixedFile], limit: int) -> list[EditDraft]:
    """Return at most `limit` mutants: omitted hunks, then faults on the fix's lines, then faults on lines near them.

    They are selected for diversity. A fix of a line alone often gives only one or two.
    """
    drafts = {draft.patch: draft for draft in draft_omissions(files)[:MAX_OMITTED_HUNKS]}
    for near in (0, NEAR):
        for draft in draft_line_mutants(files, limit, near=near):
            drafts.setdefault(draft.patch, draft)
    return list(drafts.values())[:limit]


def draft_line_mutants(files: Sequence[FixedFile], limit: int, *, near: int = 0) -> list[EditDraft]:
    """Return at most `limit` diverse faults on the lines of the fix, and on those at most `near` from them."""
    mutations = [
        mutation for file in files for mutation in generate_mutants(file.path, file.after, file.list_lines_near(near))
    ]
    return [_draft_from_mutation(files, mutation) for mutation in select_diverse(mutations, limit)]


def draft_omissions(files: Sequence[FixedFile]) -> list[EditDraft]:
    """Return a draft for each hunk of code that the fix can lack; none where the fix has only one hunk.

    Hunks of comments and docstrings alone, which no test can miss, and new files are left out.
    """
    blocks = [(file, block) for file in files if file.before is not None for block in file.blocks]
    if len(blocks) < 2:
        return []
    texts = [(file, block, _revert_block(file, block)) for file, block in blocks]
    return [
        EditDraft(
            operator=OMITTED_HUNK,
            path=file.path,
            line=max(1, block[2] + 1),
            last_line=max(1, block[2] + 1, block[3]),
            detail="one hunk of the fix is omitted",
            patch=build_patch(file.path, file.after, text),
        )
        for file, block, text in texts
        if not has_same_code(file.path, file.after, text)
    ]


def draft_variants(files: Sequence[FixedFile], limit: int) -> list[EditDraft]:
    """Return at most `limit` variants: files encoded, with other white space, then rewrites of the fix's lines."""
    encoded = _rewrite_files(files, ENCODED, "its text is encoded", encode_program)
    return (encoded + draft_rewrites(files, limit))[:limit]


def draft_rewrites(files: Sequence[FixedFile], limit: int) -> list[EditDraft]:
    """Return at most `limit` variants that a person might write: other white space, then rewrites of lines."""
    mutations = [mutation for file in files for mutation in generate_variants(file.path, file.after, file.lines)]
    respaced = _rewrite_files(files, RESPACED, "white space differs", respace)
    return (respaced + [_draft_from_mutation(files, mutation) for mutation in select_diverse(mutations, limit)])[:limit]


def _rewrite_files(
    files: Sequence[FixedFile], operator: str, detail: str, rewrite: Callable[[str, bytes], bytes | None]
) -> list[EditDraft]:
    """Return a draft that rewrites all files that can be; none where no file can."""
    texts = {file.path: text for file in files if (text := rewrite(file.path, file.after))}
    return [_draft_from_texts(operator, files, texts, detail)] if texts else []


def draft_faults(files: Sequence[FixedFile], limit: int) -> list[EditDraft]:
    """Return at most `limit` drafts that restore the fault in another form; new files of the fix are kept."""
    old = {file.path: file.before for file in files if file.before is not None}
    hidden, spaced = (
        {path: text for path, before in old.items() if (text := rewrite(path, before))}
        for rewrite in (encode_program, respace)
    )
    mutations = [
        mutation
        for file in files
        if file.before is not None
        for mutation in generate_variants(file.path, file.before, file.old_lines)
        if mutation.operator not in LINE_ONLY_OPERATORS
    ]
    faults = [("its text is encoded", hidden)] if hidden else []
    faults += [
        (mutation.operator, spaced | _respace_mutation(mutation)) for mutation in select_diverse(mutations, limit)
    ]
    faults += [("white space differs", spaced)] if spaced else []
    drafts = [
        _draft_from_texts(REWRITTEN_FAULT, files, old | texts, f"the fault is restored: {how}") for how, texts in faults
    ]
    return [draft for draft in drafts if draft.patch][:limit]


def _respace_mutation(mutation: Mutation) -> dict[str, bytes]:
    """Return the file of a rewrite, also with other white space where that is possible."""
    return {mutation.path: respace(mutation.path, mutation.after) or mutation.after}


def _revert_block(file: FixedFile, block: Block) -> bytes:
    i1, i2, j1, j2 = block
    old, new = split_lines(file.before or b""), split_lines(file.after)
    return b"".join([*new[:j1], *old[i1:i2], *new[j2:]])


def _draft_from_mutation(files: Sequence[FixedFile], mutation: Mutation) -> EditDraft:
    file = next(file for file in files if file.path == mutation.path)
    return EditDraft(
        operator=mutation.operator,
        path=mutation.path,
        line=mutation.line,
        last_line=mutation.line,
        detail=mutation.detail,
        patch=build_patch(file.path, file.after, mutation.after),
    )


def _draft_from_texts(operator: str, files: Sequence[FixedFile], texts: Mapping[str, bytes], detail: str) -> EditDraft:
    """Return a draft that replaces the content of several files."""
    changed = [file for file in files if file.path in texts and texts[file.path] != file.after]
    line = next((file.lines[0] for file in changed if file.lines), 1)
    return EditDraft(
        operator=operator,
        path=changed[0].path if changed else "",
        line=line,
        last_line=line,
        detail=detail,
        patch=b"".join(build_patch(file.path, file.after, texts[file.path]) for file in changed),
    )
