# The words a newcomer would guess. `just` alone lists them.

default:
    @just --list

# Everything needed to work here: environment, Docker engine, base image
setup:
    scripts/setup

# The tests: fast and docker tiers
test:
    scripts/test

# Only what needs no engine
test-fast:
    scripts/test fast

# Third parties' tools on our bundles, real packages: minutes
test-slow:
    scripts/test slow

# The main job on real packages
demo:
    scripts/demo

# Lint, types, architecture
check:
    scripts/test check

# Write the code as the formatter likes it
format:
    .venv/bin/ruff format .
    .venv/bin/ruff check --fix .

# Resolve the dependencies anew
lock:
    .venv/bin/uv pip compile pyproject.toml --group dev --extra benchmarks --extra postgres --universal \
        --python-version 3.11 --generate-hashes --upgrade -q -o requirements.lock --custom-compile-command "just lock"
