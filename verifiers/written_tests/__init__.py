"""Tests for changes without tests: a model writes them, and runs decide whether they are kept.

`verify_with_written_tests` is the stage `verify` of such a change. An answer is a few new test files. They are checked
by path, size and text (`languages.test_faults`) before anything runs; then the change is verified with them like any
other; then they must fail on faults in the gold patch and pass with rewrites that keep its behaviour. The fault that is
wrong is sent back to the model, up to `write_attempts` times in all.
"""

from verifiers.written_tests.stage import MAX_EDITS, judge_edits, split_edits, verify_with_written_tests

__all__ = ["MAX_EDITS", "judge_edits", "split_edits", "verify_with_written_tests"]
