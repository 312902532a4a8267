from __future__ import annotations

from pathlib import Path

from backends.git import GitRepository
from backends.tree import CommitTree
from languages import yaml_nodes
from languages.services import parse_service_image
from languages.workflows import Job, WorkflowValue, parse_apt_packages, read_jobs
from tests.helpers import TinyRepo


def parse_jobs(tmp_path: Path, files: dict[str, str]) -> list[Job]:
    repo = TinyRepo(tmp_path / "repo")
    return read_jobs(CommitTree(GitRepository(repo.path), repo.commit("first", files)))


GITHUB = """\
on: push
env: {CI_COLOR: "0", TOKEN: "${{ secrets.T }}"}
jobs:
  tests:
    strategy:
      matrix:
        node: [18, 20.10]
        include:
          - {node: 22, os: macos}
        exclude:
          - node: 99
    services:
      db:
        image: postgres:13
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-node@v4
        with:
          node-version: ${{ matrix.node }}
      - run: |
          # first
          sudo apt-get install -y \\
            graphviz $MORE

          npm ci
      - run: npm test
        working-directory: ./packages/core
  lint-all:
    steps:
      - run: npm run lint
"""


def test_shell_lines_of_a_workflow_have_line_numbers(tmp_path: Path) -> None:
    tests, lint = parse_jobs(tmp_path, {".github/workflows/ci.yml": GITHUB})
    assert [(line.line, line.text, line.folder) for line in tests.lines] == [
        (22, "sudo apt-get install -y   graphviz $MORE", ""),
        (25, "npm ci", ""),
        (26, "npm test", "packages/core"),
    ]
    assert [w.text for w in tests.list_system_packages()] == ["graphviz"]
    assert (tests.name, tests.line, tests.is_auxiliary) == ("tests", 4, False)
    assert lint.is_auxiliary


def test_a_reference_to_the_matrix_is_replaced_by_its_values(tmp_path: Path) -> None:
    tests = parse_jobs(tmp_path, {".github/workflows/ci.yml": GITHUB})[0]
    assert tests.values["node-version"] == (
        WorkflowValue(text="18", line=7),
        WorkflowValue(text="20.10", line=7),
        WorkflowValue(text="22", line=9),
    )


def test_services_images_and_literal_variables_are_read(tmp_path: Path) -> None:
    tests = parse_jobs(tmp_path, {".github/workflows/ci.yml": GITHUB})[0]
    assert [(w.text, w.line, parse_service_image(w.text)) for w in tests.services] == [
        ("postgres:13", 14, "postgresql")
    ]
    assert dict(tests.env) == {"CI_COLOR": "0"}
    assert [w.text for w in tests.uses] == ["actions/checkout@v4", "actions/setup-node@v4"]


COMPOSITE_WORKFLOW = """\
jobs:
  a:
    steps:
      - uses: ./.github/actions/setup
      - run: go test
"""
COMPOSITE_ACTION = """\
inputs:
  go-version:
    default: '1.22'
runs:
  steps:
    - uses: actions/setup-go@v5
      with:
        go-version: ${{ inputs.go-version }}
    - run: make deps
"""


def test_the_steps_of_a_composite_action_belong_to_the_job_that_uses_it(tmp_path: Path) -> None:
    jobs = parse_jobs(
        tmp_path, {".github/workflows/ci.yml": COMPOSITE_WORKFLOW, ".github/actions/setup/action.yml": COMPOSITE_ACTION}
    )
    assert [line.text for line in jobs[0].lines] == ["make deps", "go test"]
    assert [value.text for value in jobs[0].values["go-version"]] == ["1.22"]


PROVIDERS = {
    ".travis.yml": """\
language: node_js
node_js:
  - 8
  - 'lts/*'
services: redis-server
addons:
  apt:
    packages: [libgif-dev]
script: npm test
""",
    ".gitlab-ci.yml": """\
image: golang:1.20
variables: {A: b}
unit:
  script:
    - go test ./...
""",
    ".circleci/config.yml": """\
jobs:
  build:
    docker:
      - image: cimg/ruby:3.1
      - image: mysql:8
    steps:
      - checkout
      - run: bundle
      - run: {name: t, command: rake}
""",
    "azure-pipelines.yml": """\
jobs:
- job: unit
  steps:
  - task: NodeTool@0
    inputs: {versionSpec: 12.x}
  - script: yarn test
""",
}


def test_all_providers_give_jobs_of_the_same_form(tmp_path: Path) -> None:
    jobs = parse_jobs(tmp_path, PROVIDERS)
    by_name = {job.name: job for job in jobs}
    assert [v.text for v in by_name["travis"].values["node_js"]] == ["8", "lts/*"]
    assert [w.text for w in by_name["travis"].list_system_packages()] == ["libgif-dev"]
    assert [parse_service_image(w.text) for w in by_name["travis"].services] == ["redis"]
    assert [line.text for line in by_name["unit"].lines] in (["go test ./..."], ["yarn test"])
    assert {w.text for job in jobs for w in job.uses} == {"golang:1.20", "cimg/ruby:3.1"}
    assert [line.text for line in by_name["build"].lines] == ["bundle", "rake"]
    assert [parse_service_image(w.text) for w in by_name["build"].services] == [None]
    assert [v.text for job in jobs for v in job.values.get("versionspec", ())] == ["12.x"]


def test_invalid_and_exponential_yaml_gives_an_empty_node(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(8)
    )
    assert parse_jobs(tmp_path, {".github/workflows/a.yml": "jobs: [", ".travis.yml": "- just\n- a list\n"}) != []
    assert not yaml_nodes.load_yaml(bomb)
    assert not yaml_nodes.load_yaml("a: &a [*a]")


def test_only_literal_names_are_debian_packages() -> None:
    line = "sudo apt-get update && sudo apt-get -qq install -y libfoo-dev ${X} ./a.deb && apt install g++ ; install no"
    assert list(parse_apt_packages(line)) == ["libfoo-dev", "g++"]
