"""A language model that mends builds: it looks around in a container, edits the draft and has it tested.

What it is told stands in `prompts/`, what it can do in `tools`. It never writes a Dockerfile and is never believed:
images are rendered from the draft, and whether one is accepted reports say.
"""
