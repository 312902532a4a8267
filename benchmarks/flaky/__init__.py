"""How many flaky tests verification catches, and how many get into certified tasks (`python -m benchmarks.flaky`)."""
