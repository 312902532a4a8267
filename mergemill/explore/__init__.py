"""Exploring: corpora of the store, the steps from seeds to certified questions, reports and bundles."""
