"""Environment builds of real repositories without a model: planned, built, tests collected, most tests pass twice."""
