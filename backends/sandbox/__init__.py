"""Boxes for foreign code: the protocol (`base`) and its Docker implementation (`docker`)."""
