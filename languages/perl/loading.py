"""Code in a file of Perl that runs a shell command when the file is loaded."""

from __future__ import annotations

from languages.loading import Changes, LoadHook, quote_single


def _write(path: str, source: bytes, shell: str) -> Changes:
    code = f"\nsystem({quote_single(shell)});\n1;\n".encode()
    body, mark, rest = source.partition(b"\n__END__")
    return {path: body + code + mark + rest}


HOOK = LoadHook(suffixes=(".pl", ".pm"), write=_write)
