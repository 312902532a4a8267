"""Tests that a submission wrote: which files its patch touches, and the runs that measure the tests."""
