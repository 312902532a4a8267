"""Create a plan draft from an R package and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from languages.draft import Dependency, NoPlanError, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue
from languages.r.description import PackageDescription, list_debian_names
from languages.r.releases import RELEASES
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, render_debian_install, render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import VersionBounds, parse_constraint, rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

TEST_FILE = r"(^|/)tests/testthat/test[^/]*\.[rR]$"
FRAMEWORK = "testthat"
COMPILER = "r-base-dev"
"""Debian package of the tools that R needs to compile the code of a package."""
SNAPSHOTS = "https://packagemanager.posit.co/cran/"
"""CRAN as it was on each day since 2017-10-10."""
_SETTINGS = (
    ("TESTTHAT_MAX_FAILS", "Inf"),
    ("TESTTHAT_PARALLEL", "FALSE"),
    ("R_KEEP_PKG_SOURCE", "yes"),
    ("RENV_CONFIG_AUTOLOADER_ENABLED", "FALSE"),  # a project's own library is not in the image
)


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    prefix = f"{folder}/" if folder else ""
    description = PackageDescription(tree, folder)
    if not description.name:
        raise NoPlanError("there is no DESCRIPTION of a package")
    files = list_test_files(tree, folder)
    if not files:
        raise NoPlanError("no file tests/testthat/test*.R")
    bound = description.r_bound
    bounds = [VersionBounds(allows=parse_constraint(bound.text), source=bound)] if bound else []
    paths = (f"{prefix}tests/testthat",)
    packages = find_system_packages(tree)
    if native := next((path for path in tree.glob(f"{prefix}src/*") if re.search(r"\.(c|cc|cpp|f|f90)$", path)), ""):
        packages[COMPILER] = SourcedValue(text=COMPILER, path=native)
    draft = PlanDraft(
        language="r",
        name=description.name,
        versions=rank_versions(RELEASES, context, list(_read_named_versions(tree)), bounds),
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework=FRAMEWORK, argv=("Rscript",), paths=paths, folder=folder),
        dependencies=tuple(_list_dependencies(tree, folder, description, native)),
        system_packages=tuple(packages[name] for name in sorted(packages)),
        env=(*LOCAL_SETTINGS, *_SETTINGS),
        evidence=(
            Evidence(choice="test.framework", value=FRAMEWORK, path=files[0], line=0),
            Evidence(choice="test.paths", value=paths[0], path=files[0], line=0),
            Evidence(choice="pin", value="date", path="(registry)", line=0, note=f"{SNAPSHOTS}DATE"),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the root if it is a package, else the deepest package that contains the changed files."""
    if tree.is_file("DESCRIPTION"):
        return ""
    changed = [path for path in changed_paths if path.lower().endswith(".r")]
    roots = [posixpath.dirname(path) for path in tree.glob("*/DESCRIPTION")]
    return find_common_folder(roots, changed) or ("" if changed else min(roots, key=len, default=""))


def list_test_files(tree: SourceTree, folder: str) -> list[str]:
    """Return files `tests/testthat/test*.R` of the package in `folder`, sorted."""
    start = f"{folder}/tests/testthat/" if folder else "tests/testthat/"
    return sorted(path for path in tree.entries if path.startswith(start) and re.search(TEST_FILE, path))


def _list_dependencies(
    tree: SourceTree, folder: str, description: PackageDescription, native: str
) -> Iterator[Dependency]:
    """Yield testthat, the package that compiles the file `native`, and the packages of DESCRIPTION, each once.

    Suggested packages are among them if code or tests name them.
    """
    prefix = f"{folder}/" if folder else ""
    paths = [p for p in sorted(tree.entries) if re.match(rf"{re.escape(prefix)}(R|tests)/.*\.[rR]$", p)]
    code = "\n".join(tree.read_many(paths[:3000]).values())
    own_names = {FRAMEWORK: description.path} | ({"pkgbuild": native} if native else {})
    for name, path in own_names.items():
        yield Dependency(role=Role.TEST, source=SourcedValue(text=name, path=path))
    for dependency in description.list_dependencies(code):
        if dependency.source.text not in own_names:
            yield dependency


def _read_named_versions(tree: SourceTree) -> Iterator[SourcedValue]:
    for job in read_jobs(tree):
        values = [value for key in ("r-version", "r_version", "r") for value in job.values.get(key, ())]
        for value in () if job.is_auxiliary else values:
            if re.match(r"\d", value.text):  # others are `release`, `devel` and `oldrel-1`
                yield SourcedValue(text=value.text, path=job.path, line=value.line)


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`."""
    names = [dependency.source.text for dependency in draft.dependencies]
    if DEBIAN_PACKAGES in draft.switches:
        step = render_debian_install(
            [(name, list_debian_names(name)) for name in names if name != FRAMEWORK], always=("r-cran-testthat",)
        )
    else:
        required = [d.source.text for d in draft.dependencies if d.role is not Role.OPTIONAL]
        code = (
            f'options(repos = "{SNAPSHOTS}{draft.exclude_newer}", Ncpus = parallel::detectCores()); '
            'if (!nrow(available.packages())) stop("could not reach host"); '
            f"words <- commandArgs(TRUE); install.packages(words); count <- {len(required)}; "
            "missing <- setdiff(head(words, count), rownames(installed.packages())); "
            'if (length(missing)) stop("not installed: ", toString(missing))'
        )
        step = render_registry_install("CRAN", f"Rscript -e {quote_words([code])} {quote_words(_sort(draft))}")
    folder = posixpath.join("/testbed", draft.test.folder).rstrip("/")
    compiled = (f"cd {quote_words([folder])} && Rscript --vanilla -e 'pkgbuild::compile_dll()'",)
    has_code = any(package.text == COMPILER for package in draft.system_packages)
    return build_plan(draft, (step,), compiled if has_code else ())


def _sort(draft: PlanDraft) -> list[str]:
    """Return the names of the packages, the required packages first."""
    ordered = sorted(draft.dependencies, key=lambda dependency: dependency.role is Role.OPTIONAL)
    return [dependency.source.text for dependency in ordered]
