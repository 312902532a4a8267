from __future__ import annotations

from pathlib import Path

from backends.git import Repository
from backends.tree import Tree
from languages import marked
from languages.services import of_image
from languages.workflows import Job, Value, apt_packages, jobs
from tests.helpers import TinyRepo


def jobs_of(tmp_path: Path, files: dict[str, str]) -> list[Job]:
    repo = TinyRepo(tmp_path / "repo")
    return jobs(Tree(Repository(repo.path), repo.commit("first", files)))


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


def test_a_workflow_tells_what_a_job_runs_and_on_which_line(tmp_path: Path) -> None:
    tests, lint = jobs_of(tmp_path, {".github/workflows/ci.yml": GITHUB})
    assert [(line.line, line.text, line.folder) for line in tests.lines] == [
        (22, "sudo apt-get install -y   graphviz $MORE", ""),
        (25, "npm ci", ""),
        (26, "npm test", "packages/core"),
    ]
    assert [w.text for w in tests.system_packages()] == ["graphviz"]
    assert (tests.name, tests.line, tests.is_beside) == ("tests", 4, False)
    assert lint.is_beside


def test_a_value_that_names_the_matrix_stands_for_its_values(tmp_path: Path) -> None:
    tests = jobs_of(tmp_path, {".github/workflows/ci.yml": GITHUB})[0]
    assert tests.values["node-version"] == (
        Value(text="18", line=7), Value(text="20.10", line=7), Value(text="22", line=9),
    )  # fmt: skip


def test_services_images_and_plain_variables_are_told(tmp_path: Path) -> None:
    tests = jobs_of(tmp_path, {".github/workflows/ci.yml": GITHUB})[0]
    assert [(w.text, w.line, of_image(w.text)) for w in tests.services] == [("postgres:13", 14, "postgresql")]
    assert dict(tests.env) == {"CI_COLOR": "0"}
    assert [w.text for w in tests.uses] == ["actions/checkout@v4", "actions/setup-node@v4"]


def test_the_steps_of_a_composite_action_belong_to_the_job_that_uses_it(tmp_path: Path) -> None:
    found = jobs_of(tmp_path, {
        ".github/workflows/ci.yml":
            "jobs:\n  a:\n    steps:\n      - uses: ./.github/actions/setup\n      - run: go test\n",
        ".github/actions/setup/action.yml":
            "inputs:\n  go-version:\n    default: '1.22'\nruns:\n  steps:\n    - uses: actions/setup-go@v5\n"
            "      with:\n        go-version: ${{ inputs.go-version }}\n    - run: make deps\n",
    })  # fmt: skip
    assert [line.text for line in found[0].lines] == ["make deps", "go test"]
    assert [value.text for value in found[0].values["go-version"]] == ["1.22"]


def test_other_providers_are_read_alike(tmp_path: Path) -> None:
    found = jobs_of(tmp_path, {
        ".travis.yml": "language: node_js\nnode_js:\n  - 8\n  - 'lts/*'\nservices: redis-server\naddons:\n  apt:\n"
                       "    packages: [libgif-dev]\nscript: npm test\n",
        ".gitlab-ci.yml": "image: golang:1.20\nvariables: {A: b}\nunit:\n  script:\n    - go test ./...\n",
        ".circleci/config.yml": "jobs:\n  build:\n    docker:\n      - image: cimg/ruby:3.1\n      - image: mysql:8\n"
                                "    steps:\n      - checkout\n      - run: bundle\n"
                                "      - run: {name: t, command: rake}\n",
        "azure-pipelines.yml": "jobs:\n- job: unit\n  steps:\n  - task: NodeTool@0\n    inputs: {versionSpec: 12.x}\n"
                               "  - script: yarn test\n",
    })  # fmt: skip
    by_name = {job.name: job for job in found}
    assert [v.text for v in by_name["travis"].values["node_js"]] == ["8", "lts/*"]
    assert [w.text for w in by_name["travis"].system_packages()] == ["libgif-dev"]
    assert [of_image(w.text) for w in by_name["travis"].services] == ["redis"]
    assert [line.text for line in by_name["unit"].lines] in (["go test ./..."], ["yarn test"])
    assert {w.text for job in found for w in job.uses} == {"golang:1.20", "cimg/ruby:3.1"}
    assert [line.text for line in by_name["build"].lines] == ["bundle", "rake"]
    assert [of_image(w.text) for w in by_name["build"].services] == [None]
    assert [v.text for job in found for v in job.values.get("versionspec", ())] == ["12.x"]


def test_broken_and_hostile_yaml_says_nothing(tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(8)
    )
    assert jobs_of(tmp_path, {".github/workflows/a.yml": "jobs: [", ".travis.yml": "- just\n- a list\n"}) != []
    assert not marked.load(bomb)
    assert not marked.load("a: &a [*a]")


def test_only_plain_names_are_debian_packages() -> None:
    line = "sudo apt-get update && sudo apt-get -qq install -y libfoo-dev ${X} ./a.deb && apt install g++ ; install no"
    assert list(apt_packages(line)) == ["libfoo-dev", "g++"]
