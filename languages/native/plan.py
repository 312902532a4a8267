"""Create a plan draft from a C or C++ repository and render it as a build plan. Both are pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from languages import apt
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.facts import SourcedValue
from languages.native import meson, packages, tests
from languages.native.cmake import CMakeProject, read_cmake, read_cmake_with_programs
from languages.native.makefiles import find_test_target
from languages.native.releases import CMAKE, RELEASED, TOOLS
from languages.native.submodules import find_packaged_submodules, render_library_steps
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, quote_words
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

CI_PACKAGES = "ci-packages"
IGNORE_WARNINGS = "ignore-warnings"
SWITCHES = {
    CI_PACKAGES: "libraries that CI installs are installed too, as far as Debian has them",
    IGNORE_WARNINGS: "GCC does not treat warnings as errors",
}
LENIENT = "/opt/lenient"
"""Folder of compilers that leave out `-Werror`."""

BUILD = "/opt/build"
"""The build folder. It is outside the tree, so that the tree stays clean; the tests' user builds in it again."""

_CONFIGURE_STEP = "@configure@"
"""Place in a draft's steps of the command that configures; `draft.test.argv` is that command."""
CONFIGURE = (
    "cmake",
    "-S",
    ".",
    "-B",
    BUILD,
    "-G",
    "Ninja",
    "-DCMAKE_BUILD_TYPE=Debug",
    "-DCMAKE_C_FLAGS_DEBUG=-O2",
    "-DCMAKE_CXX_FLAGS_DEBUG=-O0",
    "-DCMAKE_COMPILE_WARNING_AS_ERROR=OFF",
)
"""Assertions enabled, no debug information, because objects stay in the source layer."""

FETCHED = "/opt/packaged"
"""Folder of content that FetchContent would download, made from Debian's packages."""


def create_draft(language: str, tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan.

    Raises:
        NoPlanError: there is no project with tests and a supported build system.
    """
    if not any(re.search(tests.SOURCES, path) for path in tree.entries):
        raise NoPlanError("no C or C++ file in the tree")
    cmake = read_cmake(tree)
    if cmake is not None:
        build = _create_cmake_steps(tree, cmake)
    elif tree.is_file("meson.build") and "test(" in _uses_only_meson(tree):
        build = _create_meson_steps(tree)
    elif _has_make_check(tree):
        build = _create_autotools_steps(tree)
    elif (target := find_test_target(tree)) is not None:
        build = _create_make_steps(*target)
    elif (cmake := read_cmake_with_programs(tree)) is not None:
        build = _create_program_steps(tree, cmake)
    else:
        raise NoPlanError("neither CMake, Meson nor Autotools declares tests, and no makefile has a target for them")
    test, source_steps, evidence = build
    compilers = _rank_compilers(context, cmake.minimum_version() if cmake else (0, 0))
    if not compilers:
        raise NoPlanError("no suitable compiler is available")
    libraries = _find_libraries(tree, cmake)
    # The date has no effect here; with the start of a year, commits of the year before it share layers.
    until = date(context.day.year + 1, 1, 1)
    draft = PlanDraft(
        language=language,
        name="",
        versions=tuple(compilers),
        day=context.day,
        exclude_newer=until,
        test=test,
        system_packages=libraries,
        env=LOCAL_SETTINGS,
        switches=frozenset({CI_PACKAGES}),
        dependency_steps=_render_optional_packages(tree, libraries),
        source_steps=(*render_library_steps(find_packaged_submodules(tree)), *source_steps),
        evidence=(*evidence, *_list_submodule_evidence(tree)),
    )
    return add_ci_services(draft, read_jobs(tree))


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft."""
    tools = f"command -v cmake ninja meson autoreconf > /dev/null || {{ {apt.render_install(TOOLS)}; }}"
    steps = draft.dependency_steps if CI_PACKAGES in draft.switches else ()
    if IGNORE_WARNINGS in draft.switches:
        compilers = (("CC", f"{LENIENT}/gcc"), ("CXX", f"{LENIENT}/g++"))
        draft, steps = replace(draft, env=(*draft.env, *compilers)), (_render_lenient_compilers(), *steps)
    configure = quote_words(draft.test.argv)
    source_steps = tuple(step.replace(_CONFIGURE_STEP, configure) for step in draft.source_steps)
    return build_plan(replace(draft, dependency_steps=steps, source_steps=source_steps), (tools,), ())


def _render_lenient_compilers() -> str:
    """Return the step that writes compilers that leave out `-Werror`."""
    lines = (
        "#!/bin/bash",
        "words=()",
        'for word; do case "$word" in -Werror | -Werror=*) ;; *) words+=("$word") ;; esac; done',
    )
    return (
        f"mkdir -p {LENIENT} && for one in gcc g++; do printf '%s\\n' {quote_words(lines)}"
        f""" 'exec '"$one"' "${{words[@]}}"' > {LENIENT}/$one && chmod 755 {LENIENT}/$one; done"""
    )


def drop_ci_packages(draft: PlanDraft) -> PlanDraft:
    """Install only the libraries named in build files."""
    return replace(draft, switches=draft.switches - {CI_PACKAGES})


def select_next_compiler(draft: PlanDraft) -> PlanDraft:
    """Select the next compiler of the evidence."""
    return replace(draft, versions=draft.versions[1:] or draft.versions)


def report_programs(draft: PlanDraft) -> PlanDraft:
    """Report a result for each program instead of each case of Catch2 and doctest: some files may not be compiled."""
    if draft.test.framework != "catch2":
        return draft
    return replace(draft, test=draft.test.model_copy(update={"framework": "ctest"}))


def _create_cmake_steps(tree: SourceTree, cmake: CMakeProject) -> tuple[TestCommand, list[str], list[Evidence]]:
    settings = {
        setting.value.partition("=")[0]: setting for setting in [*cmake.read_ci_options(), *cmake.detect_options()]
    }
    fetched = list(cmake.list_fetched_content())
    options = [f"-D{setting.value}" for _, setting in sorted(settings.items())]
    if fetched:
        options.append("-DFETCHCONTENT_TRY_FIND_PACKAGE_MODE=ALWAYS")
    libraries = cmake.map_fetched_libraries()
    folders = {name: library.source or f"{FETCHED}/{name}" for name, library in libraries.items()}
    options += [f"-DFETCHCONTENT_SOURCE_DIR_{name.upper()}={folder}" for name, folder in folders.items()]
    framework = "ctest"
    if tests.uses_google(tree) and cmake.has_single_test_executable():
        framework = "googletest"
    elif tests.uses_catch(tree) and not cmake.discovers_tests():
        framework = "catch2"
    test = TestCommand(framework=framework, argv=(*CONFIGURE, *options), folder=cmake.folder)
    enter = f"cd {quote_words([cmake.folder])} && " if cmake.folder else ""
    steps = [
        *render_library_steps({folders[name]: library for name, library in libraries.items() if not library.source}),
        f"({enter}{_CONFIGURE_STEP} && cmake --build {BUILD} --parallel $(nproc))",
        *_drop_ownership(),
    ]
    return test, steps, [*settings.values(), *fetched]


def _create_program_steps(tree: SourceTree, cmake: CMakeProject) -> tuple[TestCommand, list[str], list[Evidence]]:
    """Return the steps of a project that builds test programs and does not register them with ctest."""
    test, steps, evidence = _create_cmake_steps(tree, cmake)
    program = cmake.find_test_program()
    return test.model_copy(update={"framework": "programs"}), steps, [*([program] if program else []), *evidence]


def _create_meson_steps(tree: SourceTree) -> tuple[TestCommand, list[str], list[Evidence]]:
    test = TestCommand(framework="meson", argv=("meson", "test"))
    options = list(meson.detect_options(tree))
    settings = " ".join(f"-D{word}" for word in ("buildtype=debug", "debug=false", "werror=false"))
    settings += "".join(f" -D{option.value}" for option in options)
    steps = [f"meson setup {BUILD} --wrap-mode=nodownload {settings}", f"ninja -C {BUILD}"]
    evidence = [Evidence(choice="test", value="meson test", path="meson.build", line=0), *options]
    return test, [*steps, *_drop_ownership()], evidence


def _has_make_check(tree: SourceTree) -> bool:
    """Return whether there is a configure script (or its source) and `make` has tests to run."""
    if not any(tree.is_file(path) for path in ("configure.ac", "configure.in", "configure")):
        return False
    makefiles = tree.read_many([*tree.glob("*Makefile.am"), *tree.glob("*Makefile.in")]).values()
    declares = any(re.search(r"^\s*(TESTS|check_\w+)\s*\+?=|^check\b.*:", text, re.MULTILINE) for text in makefiles)
    return declares or find_test_target(tree, ".in") is not None


def _create_autotools_steps(tree: SourceTree) -> tuple[TestCommand, list[str], list[Evidence]]:
    source = next(path for path in ("configure.ac", "configure.in", "configure") if tree.is_file(path))
    prepare = "./autogen.sh --no-configure || autoreconf -fi" if tree.is_file("autogen.sh") else "autoreconf -fi"
    prepare = "true" if source == "configure" else f"NOCONFIGURE=1 sh -c {quote_words([prepare])}"
    options = "--disable-docs --enable-maintainer-mode=no" if source != "configure" else ""
    if "oniguruma" in " ".join(tree.submodules()):
        options += " --with-oniguruma=yes"
    configure = f"CFLAGS='-g0 -O2' CXXFLAGS='-g0 -O1' ./configure {options}".strip()
    steps = [prepare, configure, "make -j$(nproc)"]
    if not tree.glob("*Makefile.am") and (target := find_test_target(tree, ".in")) is not None:
        test, _, evidence = _create_make_steps(*target)
        return test, steps, evidence
    test = TestCommand(framework="automake", argv=("make", "check", "VERBOSE=1"))
    return test, steps, [Evidence(choice="test", value="make check", path=source, line=0)]


def _create_make_steps(folder: str, target: Evidence) -> tuple[TestCommand, list[str], list[Evidence]]:
    """Return the test command of a plain makefile; each run of the tests builds everything."""
    return TestCommand(framework="make", argv=("make", target.value), folder=folder), [], [target]


def _uses_only_meson(tree: SourceTree) -> str:
    paths = [path for path in tree.glob("*meson.build") if not path.startswith("subprojects/")]
    return "\n".join(tree.read_many(paths).values())


def _drop_ownership() -> list[str]:
    return [f"chown -R 1000:1000 {BUILD}"]


def _list_submodule_evidence(tree: SourceTree) -> Iterator[Evidence]:
    packaged = find_packaged_submodules(tree)
    for evidence in list_external_content(tree):
        library = packaged.get(evidence.value) if evidence.choice == "submodule" else None
        yield evidence.model_copy(update={"note": f"replaced by Debian's {library.package}"}) if library else evidence


def _find_libraries(tree: SourceTree, cmake: CMakeProject | None) -> tuple[SourcedValue, ...]:
    own = (
        {name for key in cmake.list_project_names() for name in packages.DEBIAN.get(key, "").split()}
        if cmake
        else set()
    )
    libraries = [library for library in packages.find_libraries(tree) if library.text not in own]
    modules = find_packaged_submodules(tree).values()
    more = [SourcedValue(text=library.package, path=".gitmodules") for library in modules]
    libraries_fetched = cmake.map_fetched_libraries() if cmake else {}
    for fetched in cmake.list_fetched_content() if cmake else ():
        names = packages.DEBIAN.get(fetched.value.lower(), "").split()
        names += [libraries_fetched[fetched.value].package] if fetched.value in libraries_fetched else []
        more += [SourcedValue(text=name, path=fetched.path, line=fetched.line) for name in names]
    names_found = {library.text for library in libraries}
    return (*libraries, *{library.text: library for library in more if library.text not in names_found}.values())


def _render_optional_packages(tree: SourceTree, libraries: tuple[SourcedValue, ...]) -> tuple[str, ...]:
    """Return the step that installs CI's other packages, as far as the Debian release has them."""
    installed = {package.text for package in libraries}
    names = quote_words([package.text for package in packages.find_ci_packages(tree) if package.text not in installed])
    step = (
        f"{apt.UPDATE} && known=$(for name in {names}; do"
        ' [ -z "$(apt-cache madison $name)" ] || echo $name; done)'
        f" && {apt.INSTALL} ca-certificates $known > /dev/null && {apt.CLEAN}"
    )
    return (step,) if names else ()


def _rank_compilers(context: PlanningContext, minimum: tuple[int, int]) -> list[Evidence]:
    """Return the compilers to try: the newest Debian release on the day first, then the others, nearest first."""
    available = context.list_available()
    suitable = [version for version in available if CMAKE[version] >= minimum] or list(available)[-1:]
    released = [version for version in suitable if RELEASED[version] <= context.day]
    order = [*reversed(released), *(version for version in suitable if version not in released)]
    return [
        Evidence(
            choice="language_version", value=v, path="(date)", line=0, note=f"Debian release current on {context.day}"
        )
        for v in order
    ]
