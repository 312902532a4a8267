"""Simulated environments: runs, records, exports, and how true a simulator is."""
