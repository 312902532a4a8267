"""Test reports: JUnit XML from the container to outcomes, and the lines that a run executed."""
