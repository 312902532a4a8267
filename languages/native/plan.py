"""From what a C or C++ repository says to a draft, and from a draft to the plan; both pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from languages import apt
from languages.draft import Context, Draft, NoPlanError
from languages.facts import Wanted
from languages.native import packages, tests
from languages.native.cmake import CMake, read_cmake
from languages.native.releases import CMAKE, RELEASED, TOOLS
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, quoted
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

CI_PACKAGES = "ci-packages"
SWITCHES = {CI_PACKAGES: "libraries that CI installs are there, as far as Debian has them"}

BUILD = "/opt/build"
"""The build folder: outside the tree, so that no test of a clean tree sees it; the tests' user builds in it again."""

CONFIGURE = (
    "cmake", "-S", ".", "-B", BUILD, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O2",
    "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF",
)  # fmt: skip
"""Assertions on, no debug information: objects stay in the source layer."""

GOOGLE_SOURCE = "/usr/src/googletest"
_GOOGLE_MODULE = re.compile(r"(^|/)(googletest|gtest|google-?test)$", re.IGNORECASE)
"""Submodules that Debian's package can stand in for."""


def draft(language: str, tree: Tree, context: Context) -> Draft:
    """All choices for the tree.

    Raises:
        NoPlanError: there is no project with tests that this knows to build.
    """
    if not any(re.search(tests.SOURCES, path) for path in tree.entries):
        raise NoPlanError("no C or C++ file in the tree")
    cmake = read_cmake(tree)
    if cmake is not None:
        made = _with_cmake(tree, cmake)
    elif tree.is_file("meson.build") and "test(" in _all_meson(tree):
        made = _with_meson()
    elif _checked_by_make(tree):
        made = _with_autotools(tree)
    else:
        raise NoPlanError("neither CMake, Meson nor Autotools knows tests here")
    test, source_steps, evidence = made
    compilers = _compilers(context, cmake.minimum() if cmake else (0, 0))
    if not compilers:
        raise NoPlanError("this machine has no compiler that fits")
    libraries = _libraries(tree, cmake)
    until = date(context.day.year + 1, 1, 1)  # nothing depends on it; commits of a year share layers
    drafted = Draft(
        language=language, name="", versions=tuple(compilers), day=context.day, exclude_newer=until, test=test,
        system_packages=libraries,
        env=LOCAL_SETTINGS, switches=frozenset({CI_PACKAGES}),
        dependency_steps=_optional(tree, libraries),
        source_steps=tuple(source_steps), evidence=(*evidence, *_submodules(tree)),
    )  # fmt: skip
    return with_services(drafted, jobs(tree))


def render(made: Draft) -> BuildPlan:
    """The plan of a draft."""
    tools = f"command -v cmake ninja meson autoreconf > /dev/null || {{ {apt.install(TOOLS)}; }}"
    steps = made.dependency_steps if CI_PACKAGES in made.switches else ()
    return plan_of(replace(made, dependency_steps=steps), (tools,), ())


def without_ci_packages(made: Draft) -> Draft:
    """Only the libraries that build files name."""
    return replace(made, switches=made.switches - {CI_PACKAGES})


def next_compiler(made: Draft) -> Draft:
    """The next compiler of the evidence."""
    return replace(made, versions=made.versions[1:] or made.versions)


def _with_cmake(tree: Tree, cmake: CMake) -> tuple[TestCommand, list[str], list[Evidence]]:
    said = {one.value.partition("=")[0]: one for one in [*cmake.given_by_ci(), *cmake.switches()]}
    fetched = list(cmake.fetched())
    options = [f"-D{one.value}" for _, one in sorted(said.items())]
    if fetched:
        options.append("-DFETCHCONTENT_TRY_FIND_PACKAGE_MODE=ALWAYS")
        if any(_GOOGLE_MODULE.search(one.value) for one in fetched):
            options.append(f"-DFETCHCONTENT_SOURCE_DIR_GOOGLETEST={GOOGLE_SOURCE}")
    framework = "googletest" if tests.uses_google(tree) and cmake.one_big_test() else "ctest"
    test = TestCommand(framework=framework, argv=(*CONFIGURE, *options), folder=cmake.folder)
    go = f"cd {quoted([cmake.folder])} && " if cmake.folder else ""
    configure = quoted(test.argv)
    steps = [*_google_modules(tree), f"({go}{configure} && cmake --build {BUILD} --parallel $(nproc))", *_given_away()]
    return test, steps, [*said.values(), *fetched]


def _with_meson() -> tuple[TestCommand, list[str], list[Evidence]]:
    test = TestCommand(framework="meson", argv=("meson", "test"))
    steps = [f"meson setup {BUILD} --wrap-mode=nodownload -Dbuildtype=debug -Ddebug=false", f"ninja -C {BUILD}"]
    return test, [*steps, *_given_away()], [Evidence(choice="test", value="meson test", path="meson.build", line=0)]


def _checked_by_make(tree: Tree) -> bool:
    """Whether there is a configure script, or what makes one, and `make check` would run something."""
    if not any(tree.is_file(path) for path in ("configure.ac", "configure.in", "configure")):
        return False
    makefiles = tree.read_many([*tree.glob("*Makefile.am"), *tree.glob("*Makefile.in")]).values()
    return any(re.search(r"^\s*(TESTS|check_\w+)\s*\+?=|^check\b.*:", text, re.MULTILINE) for text in makefiles)


def _with_autotools(tree: Tree) -> tuple[TestCommand, list[str], list[Evidence]]:
    source = next(path for path in ("configure.ac", "configure.in", "configure") if tree.is_file(path))
    prepare = "./autogen.sh --no-configure || autoreconf -fi" if tree.is_file("autogen.sh") else "autoreconf -fi"
    prepare = "true" if source == "configure" else f"NOCONFIGURE=1 sh -c {quoted([prepare])}"
    options = "--disable-docs --enable-maintainer-mode=no" if source != "configure" else ""
    if "oniguruma" in " ".join(tree.submodules()):
        options += " --with-oniguruma=yes"
    configure = f"CFLAGS='-g0 -O2' CXXFLAGS='-g0 -O1' ./configure {options}".strip()
    test = TestCommand(framework="automake", argv=("make", "check", "VERBOSE=1"))
    evidence = [Evidence(choice="test", value="make check", path=source, line=0)]
    return test, [prepare, configure, "make -j$(nproc)"], evidence


def _all_meson(tree: Tree) -> str:
    paths = [path for path in tree.glob("*meson.build") if not path.startswith("subprojects/")]
    return "\n".join(tree.read_many(paths).values())


def _given_away() -> list[str]:
    return [f"chown -R 1000:1000 {BUILD}"]


def _google_modules(tree: Tree) -> list[str]:
    """Debian's GoogleTest where a submodule of it stays empty."""
    found = [path for path in tree.submodules() if _GOOGLE_MODULE.search(path)]
    return [f"mkdir -p {quoted([p])} && cp -r {GOOGLE_SOURCE}/. {quoted([p])}" for p in found]


def _submodules(tree: Tree) -> Iterator[Evidence]:
    for one in elsewhere_evidence(tree):
        stands_in = _GOOGLE_MODULE.search(one.value) is not None
        yield one.model_copy(update={"note": "Debian's googletest stands in for it"}) if stands_in else one


def _libraries(tree: Tree, cmake: CMake | None) -> tuple[Wanted, ...]:
    own = {name for key in cmake.names() for name in packages.DEBIAN.get(key, "").split()} if cmake else set()
    found = [wanted for wanted in packages.libraries(tree) if wanted.text not in own]
    google = [p for p in tree.submodules() if _GOOGLE_MODULE.search(p)]
    places = [Wanted(text="googletest", path=".gitmodules")] if google else []
    for one in cmake.fetched() if cmake else ():
        names = packages.DEBIAN.get(one.value.lower(), "").split()
        names += ["googletest"] if _GOOGLE_MODULE.search(one.value) else []
        places += [Wanted(text=name, path=one.path, line=one.line) for name in names]
    known = {wanted.text for wanted in found}
    return (*found, *{wanted.text: wanted for wanted in places if wanted.text not in known}.values())


def _optional(tree: Tree, libraries: tuple[Wanted, ...]) -> tuple[str, ...]:
    """The step that installs what CI installs beside the libraries, as far as the suite has it."""
    known = {wanted.text for wanted in libraries}
    names = quoted([wanted.text for wanted in packages.of_ci(tree) if wanted.text not in known])
    step = (
        f"{apt.UPDATE} && known=$(for name in {names}; do"
        ' [ -z "$(apt-cache madison $name)" ] || echo $name; done)'
        f" && {apt.INSTALL} ca-certificates $known > /dev/null && {apt.CLEAN}"
    )
    return (step,) if names else ()


def _compilers(context: Context, minimum: tuple[int, int]) -> list[Evidence]:
    """The compilers worth trying: of the newest Debian on the day, then the others, the nearer first."""
    available = context.available()
    fit = [version for version in available if CMAKE[version] >= minimum] or list(available)[-1:]
    old = [version for version in fit if RELEASED[version] <= context.day]
    order = [*reversed(old), *(version for version in fit if version not in old)]
    return [
        Evidence(choice="language_version", value=v, path="(date)", line=0, note=f"of the Debian of {context.day}")
        for v in order
    ]
