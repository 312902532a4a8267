"""Synthesised tool environments: making, bundles and a service of them."""
