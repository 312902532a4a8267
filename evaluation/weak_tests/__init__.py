"""Listed tests that are weak evidence: skipped without a package, reported twice, or in a file that asserts nothing."""
