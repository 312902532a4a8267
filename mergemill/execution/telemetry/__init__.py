"""Data that a run shows to other programs: metrics for Prometheus, traces for OpenTelemetry, logs as JSON lines."""
