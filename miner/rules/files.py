"""Rules on the files that a change touches. They need no patches."""

from __future__ import annotations

from core.settings.mining import MiningSettings
from languages.generated import has_generated_header, has_generated_path
from languages.paths import is_part_of_tests, is_protected, is_source, is_test_file
from languages.registry import LANGUAGES, detect_language
from miner.changes import Change
from miner.tags.tag import is_primarily_performance, tag_text
from taskdb.records import Shape


def changes_no_submodule(change: Change, _: MiningSettings) -> str | None:
    """Pass when no submodule changes: its content is in another repository."""
    moved = [file.new_path for file in change.files if "160000" in (file.old_mode, file.new_mode)]
    return f"{moved[0]} is a submodule" if moved else None


def is_in_supported_language(change: Change, _: MiningSettings) -> str | None:
    """Pass when most of the changed program files are in a supported language."""
    language = detect_language(change.paths)
    return None if not language or language in LANGUAGES else f"{language} is not supported yet"


def touches_source(change: Change, _: MiningSettings) -> str | None:
    """Pass when a source file changes; tests, documentation and packaging are not sources."""
    return None if any(is_source(path) for path in change.paths) else "no source file is changed"


def touches_tests(change: Change, _: MiningSettings) -> str | None:
    """Pass when a test file is added or changed (a fixture is none), or the change is for performance only.

    The behaviour of a performance change is checked by existing tests, which also measure its gain. With `write_tests`
    and a model, a change without tests passes, too.
    """
    touched = (file.new_path for file in change.files if file.status != "D")
    if any(is_test_file(path) and is_protected(path) for path in touched) or is_performance_only(change):
        return None
    if change.awaits_tests:
        return None
    return "no test file is changed" + (
        ", and --write-tests needs --llm and --model" if change.lacks_test_writer else ""
    )


def is_performance_only(change: Change) -> bool:
    """Return whether title and text are primarily about performance and no test file or fixture is touched.

    Benchmarks may be: they measure the change and check nothing.
    """
    request = change.pull_request
    touches_tests = any(map(is_part_of_tests, change.paths))
    if request.shape in (Shape.INSTANCE, Shape.RELEASE) or touches_tests:
        return False
    kinds, _ = tag_text(request.title, request.body or request.problem_statement, request.labels)
    return is_primarily_performance(kinds)


def should_await_tests(change: Change) -> bool:
    """Return whether a model may write the tests of a change, which touches neither test file nor fixture."""
    if change.pull_request.shape in (Shape.INSTANCE, Shape.RELEASE):
        return False
    return not any(map(is_part_of_tests, change.paths)) and not is_performance_only(change)


def has_few_files(change: Change, mining: MiningSettings) -> str | None:
    """Pass when at most `max_files` files are touched."""
    n = len(change.files)
    return None if n <= mining.max_files else f"{n} files, {mining.max_files} allowed"


def is_written_by_hand(change: Change, _: MiningSettings) -> str | None:
    """Pass when a source is neither vendored nor generated, by path, .gitattributes at the base and first lines."""
    sources = [file for file in change.files if any(is_source(path) for path in file.paths)]
    left = [file for file in sources if not has_generated_path(file.new_path)]
    if sources and not left:
        return f"all changed sources are vendored or generated, such as {sources[0].new_path}"
    if not sources:
        return None
    marked = change.find_generated_paths([file.new_path for file in left])
    left = [file for file in left if file.new_path not in marked]
    if not left:
        return f"{min(marked)} is marked as vendored or generated in .gitattributes"
    if all(has_generated_header(change.read_content(file)) for file in left):
        return f"{left[0].new_path} has the header of a generated file"
    return None
