"""Browsing: the passages of a page that fit a query best, without a model, or an extract of a model with quotes."""
