# Common tasks; `just` lists them.

default:
    @just --list

# Set up the environment, the Docker engine and the base image
setup:
    scripts/setup

# Run checks and the fast and docker tests
test:
    scripts/test

# Run the tests that need no engine
test-fast:
    scripts/test fast

# Run the tests that the change since BASE (default: main) can reach
test-changed *base:
    scripts/test changed {{base}}

# Run the slow tests: bundles in third-party tools, real packages
test-slow:
    scripts/test slow

# Run the tests of pods on a cluster of this machine
test-kubernetes:
    scripts/test kubernetes

# Make tasks from real packages; or `just demo simulate`, `just demo worlds`
demo system="tasks":
    scripts/demo {{system}}

# Check lint, format, types, architecture, dependencies and vocabulary
check:
    scripts/test check

# Serve the documentation site with live reload
docs:
    .venv/bin/mkdocs serve

# Print the measures of the vocabulary
vocabulary:
    .venv/bin/python scripts/vocabulary --measure

# Format the code
format:
    .venv/bin/ruff format .
    .venv/bin/ruff check --fix .

# Resolve the dependencies again
lock:
    .venv/bin/uv pip compile pyproject.toml --group dev --all-extras --universal \
        --python-version 3.11 --generate-hashes --upgrade -q -o requirements.lock --custom-compile-command "just lock"
