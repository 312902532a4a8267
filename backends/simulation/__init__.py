"""A model in the place of a test run, where tests cannot be run. What comes of it is never called verified."""
