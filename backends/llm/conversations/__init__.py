"""Conversations in the forms of model APIs, read into messages of chat completions."""
