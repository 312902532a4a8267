"""Agent that repairs builds: a language model inspects a container, edits the draft and requests tests.

`prompts/` contains its prompts, `tools` its tools. It never writes a Dockerfile: images are rendered from the draft,
and acceptance is decided from test reports.
"""
