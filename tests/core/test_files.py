"""Input files that are too large."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core import files
from core.errors import InputError


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1 << 20)
    path = tmp_path / "input"
    path.write_bytes(bytes(1 << 20))
    assert len(files.read_input(path)) == 1 << 20
    path.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(InputError, match="input has more than 1 MB"):
        files.read_input(path)


@pytest.mark.parametrize("excess", [0, 1])
def test_the_output_of_a_command_is_measured_as_it_is_read(excess: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    reader, writer = os.pipe()
    try:
        os.write(writer, bytes(1000 + excess))
        os.close(writer)
        path = Path(f"/dev/fd/{reader}")
        if excess:
            with pytest.raises(InputError, match="has more than"):
                files.read_input(path)
        else:
            assert files.read_input(path) == bytes(1000)
    finally:
        os.close(reader)
