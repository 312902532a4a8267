"""Negative controls: FAIL_TO_PASS tests with a changed expectation, which an honest solution must fail."""
