"""Evidence in paths: a class for each file of a change, and the kinds that such files indicate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from languages.paths import is_part_of_tests
from miner.tags.signs import Sign
from taskdb.records.tags import ChangeKind as K

PATH_CLASSES: tuple[tuple[K, str], ...] = (
    (
        K.CI,
        (
            r"(^|/)(\.github/workflows|\.circleci|\.buildkite|ci|\.ci|\.azure-pipelines)/|(^|/)(\.travis|appveyor|"
            r"\.appveyor|azure-pipelines|\.gitlab-ci|\.pre-commit-config|codecov|\.codecov|\.cirrus)\.ya?ml$|"
            r"(^|/)(tox\.ini|noxfile\.py|Jenkinsfile|dependabot\.yml|renovate\.json)$"
        ),
    ),
    (K.LOCALISATION, r"\.(po|pot|mo|xlf|xliff)$|(^|/)(locales?|translations?|i18n|l10n)/"),
    (
        K.DEPENDENCY,
        (
            r"(^|/)(requirements[^/]*\.(txt|in)|requirements/.*|constraints[^/]*\.txt|environment[^/]*\.ya?ml|"
            r"Pipfile|go\.(mod|sum)|Gemfile|package-lock\.json|Cargo\.lock|yarn\.lock|[^/]*\.lock)$"
        ),
    ),
    (K.RELEASE, r"(^|/)(_?version|__version__|__about__)\.py$|(^|/)(VERSION|\.bumpversion\.cfg)(\.txt)?$"),
    (K.LICENCE, r"(^|/)(LICEN[CS]E|COPYING|NOTICE|AUTHORS|CONTRIBUTORS)[^/]*$"),
    (K.EXAMPLE, r"(^|/)(examples?|tutorials?|demos?|gallery|galleries|notebooks?)/|\.ipynb$"),
    (K.TYPING, r"\.pyi$|(^|/)(py\.typed|mypy\.ini|\.mypy\.ini|pyrightconfig\.json)$"),
    (
        K.DOCUMENTATION,
        (
            r"(^|/)(docs?|documentation|changelog\.d|newsfragments|changes|whatsnew)/|\.(rst|md|adoc|tex)$|"
            r"(^|/)(README|CHANGES|CHANGELOG|HISTORY|NEWS|TODO|CONTRIBUTING)[^/]*$|(^|/)mkdocs\.yml$"
        ),
    ),
    (
        K.BUILD,
        (
            r"(^|/)(setup\.(py|cfg)|pyproject\.toml|MANIFEST\.in|Makefile[^/]*|CMakeLists\.txt|meson\.build|"
            r"Dockerfile[^/]*|docker-compose[^/]*|conda\.recipe/.*|meta\.ya?ml|build\.gradle|pom\.xml)$|"
            r"\.(cmake|m4|ac|am)$"
        ),
    ),
    (K.CHORE, r"(^|/)\.(gitignore|gitattributes|mailmap|editorconfig|git-blame-ignore-revs|flake8|pylintrc)$"),
    (
        K.DATA,
        (
            r"\.(csv|tsv|json|xml|png|jpe?g|svg|gif|ico|dat|parquet|npz|sqlite|sql|nc|h5|gz|zip|bin|ttf|woff2?)$|"
            r"(^|/)migrations/"
        ),
    ),
    (K.INTERFACE, r"\.(css|scss|less|html?|jinja2?|vue)$|(^|/)(templates|static)/"),
)
"""Kind -> pattern of the paths of its files. The first match decides; tests come first."""

ONLY_WEIGHT = 5.0
"""Weight of a class when all files belong to it."""
SOME_WEIGHTS = {
    K.TEST: 1.6,
    K.DOCUMENTATION: 1.0,
    K.CI: 2.6,
    K.LOCALISATION: 2.6,
    K.DEPENDENCY: 2.4,
    K.RELEASE: 1.0,
    K.LICENCE: 1.2,
    K.EXAMPLE: 2.2,
    K.TYPING: 2.2,
    K.BUILD: 2.0,
    K.CHORE: 1.0,
    K.DATA: 1.4,
    K.INTERFACE: 2.4,
}
"""Weight of a class when some files belong to it."""
NO_SOURCE_WEIGHT = -4.0
"""Weight of a change without source files for kinds that change code."""
SOURCE = "source"
CHANGELOG_PATH = re.compile(
    r"(^|/)(CHANGES|CHANGELOG|HISTORY|NEWS|changelog\.d/|newsfragments/|whatsnew/)", re.IGNORECASE
)

_PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in PATH_CLASSES)


@lru_cache(maxsize=50_000)
def classify_path(path: str) -> str:
    """Return the kind whose pattern matches `path`, or `source`."""
    if is_part_of_tests(path):
        return K.CI if _PATTERNS[0][1].search(path) else K.TEST
    return next((kind for kind, pattern in _PATTERNS if pattern.search(path)), SOURCE)


def find_path_signs(paths: Sequence[str]) -> list[Sign]:
    """Return evidence in the paths, by the rules `paths-only`, `paths-some` and `paths-no-source`; quotes are paths."""
    by_class: dict[str, str] = {}
    for path in paths:
        by_class.setdefault(classify_path(path), path)
    rest = [name for name in by_class if not (name == K.DOCUMENTATION and CHANGELOG_PATH.search(by_class[name]))]
    signs: list[Sign] = []
    for name, path in by_class.items():
        if name == SOURCE:
            continue
        if len(by_class) == 1 or rest == [name]:
            signs.append(Sign(K(name), "paths-only", path, ONLY_WEIGHT))
        else:
            signs.append(Sign(K(name), "paths-some", path, SOME_WEIGHTS[K(name)]))
    if by_class and SOURCE not in by_class:
        first = next(iter(by_class.values()))
        code_kinds = (K.BUGFIX, K.FEATURE, K.REFACTOR, K.PERFORMANCE)
        signs += [Sign(kind, "paths-no-source", first, NO_SOURCE_WEIGHT) for kind in code_kinds]
    return signs
