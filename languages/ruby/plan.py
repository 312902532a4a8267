"""Create a plan draft from a Ruby repository and render it as a build plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages.draft import Dependency, PlanDraft, PlanningContext, Role
from languages.facts import SourcedValue
from languages.rendering import LOCAL_SETTINGS, build_plan, list_external_content, read_manifests
from languages.ruby import gems, testing
from languages.ruby.gems import Gem
from languages.ruby.releases import RELEASES
from languages.scripting.ci import find_system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, render_debian_install, render_registry_install
from languages.scripting.folders import find_common_folder
from languages.scripting.versions import VersionBounds, parse_constraint, rank_versions
from languages.services import add_ci_services
from languages.source_tree import SourceTree
from languages.workflows import read_jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

COMPILE = "compile"
GEMS = "/opt/gems"
"""Folder of installed gems, separate from the interpreter's."""
OWN_GEMFILE = "/opt/debian-gems/Gemfile"
_DEBIAN_FRAMEWORKS = {"rspec": "ruby-rspec", "minitest": "ruby-minitest", "test-unit": "ruby-test-unit"}
_NO_DATES = "RubyGems cannot resolve by date: versions come from the lock file, else from the ranges alone"

_WRITE_GEMFILE = r"""
whole = lambda do |spec, seen|
  spec.runtime_dependencies.all? do |one|
    found = one.matching_specs.max_by(&:version)
    found && (seen.include?(found.name) || whole.call(found, seen + [found.name]))
  end
end
rows = ARGV.map { |row| row.split("=", 2) }.select do |name, _|
  spec = Gem::Specification.find_all_by_name(name).max_by(&:version)
  spec && whole.call(spec, [name])
end
rows.each do |name, required|
  loaded = { nil => "", "false" => ", require: false" }.fetch(required, %(, require: "#{required}"))
  puts %(gem "#{name}"#{loaded})
end
"""


def create_draft(tree: SourceTree, context: PlanningContext) -> PlanDraft:
    """Return a draft of the build plan; see `languages.base.Language.create_draft`."""
    folder = find_project_folder(tree, context.changed_paths)
    paths = gems.list_gem_files(tree, folder)
    gems_found = gems.read_gems(tree, paths)
    framework, files, framework_evidence = testing.detect_framework(tree, folder, gems_found, context.changed_paths)
    bounds = list(_read_bounds(tree, paths))
    versions = rank_versions(RELEASES, context, list(_read_named_versions(tree, folder)), bounds)
    prefix = f"{folder}/" if folder else ""
    has_gemfile = tree.is_file(f"{prefix}Gemfile") or tree.is_file(f"{prefix}gems.rb")
    test_folders = testing.list_test_folders(files, folder)
    switches = {COMPILE} if _has_extension(tree, prefix) else set()
    libraries = ":".join(
        posixpath.normpath(f"/testbed/{load_path}") for load_path in testing.list_load_paths(tree, folder, files)
    )
    draft = PlanDraft(
        language="ruby",
        name=next((posixpath.basename(p).removesuffix(".gemspec") for p in paths if p.endswith(".gemspec")), ""),
        versions=versions,
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(
            framework=framework, argv=_build_argv(framework, has_gemfile), paths=test_folders, folder=folder
        ),
        dependencies=tuple(_list_dependencies(gems_found, framework, has_gemfile)),
        manifests=read_manifests(tree, gems.list_manifests(tree, folder)) if has_gemfile else (),
        system_packages=tuple(_find_system_packages(tree, gems_found)),
        env=(*LOCAL_SETTINGS, ("RUBYLIB", libraries)),
        switches=frozenset(switches),
        evidence=(
            framework_evidence,
            Evidence(choice="test.paths", value=" ".join(test_folders), path=files[0], line=0),
            _find_pin_source(tree, prefix, has_gemfile),
            *list_external_content(tree),
        ),
    )
    return add_ci_services(draft, read_jobs(tree))


def find_project_folder(tree: SourceTree, changed_paths: Sequence[str]) -> str:
    """Return the deepest folder with a Gemfile or gemspec that contains all changed tests; else the root, as ``."""
    changed_tests = [path for path in changed_paths if re.search(f"{testing.SPEC_FILE}|{testing.TEST_FILE}", path)]
    changed_tests = changed_tests or [path for path in changed_paths if path.endswith(".rb")]
    roots = {posixpath.dirname(path) for path in tree.entries if re.search(r"(^|/)(Gemfile|[^/]+\.gemspec)$", path)}
    return find_common_folder(roots, changed_tests) or ""


def _list_dependencies(gems_found: Sequence[Gem], framework: str, has_gemfile: bool) -> Iterator[Dependency]:
    """Yield the gems that files list; Bundler reads those of a Gemfile itself."""
    role = Role.OPTIONAL if has_gemfile else Role.RUNTIME
    for gem in gems_found:
        text = f"{gem.source.text} {gem.requirement}".strip() if not has_gemfile else gem.source.text
        require_option = f"={gem.required}" if has_gemfile and gem.required else ""
        yield Dependency(
            role=role, source=SourcedValue(text=text + require_option, path=gem.source.path, line=gem.source.line)
        )
    if framework not in {gem.source.text for gem in gems_found} and not has_gemfile:
        yield Dependency(role=Role.TEST, source=SourcedValue(text=framework, path="(framework)"))


def _read_named_versions(tree: SourceTree, folder: str) -> Iterator[SourcedValue]:
    """Yield the versions in files, most trusted file first."""
    paths = [
        f"{line_number}{name}"
        for line_number in dict.fromkeys([f"{folder}/" if folder else "", ""])
        for name in (".ruby-version",)
    ]
    for path in paths:
        if text := tree.read(path).strip():
            yield SourcedValue(text=text, path=path, line=1)
    for number, line in enumerate(tree.read(".tool-versions").splitlines(), 1):
        if line.startswith("ruby "):
            yield SourcedValue(text=line, path=".tool-versions", line=number)
    for job in read_jobs(tree):
        keys = ("ruby-version", "ruby", "ruby_version", "rvm")
        values = [(value.text, value.line) for name in keys for value in job.values.get(name, ())]
        values += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)ruby:\d", use.text)]
        for text, line_number in values:
            if not job.is_auxiliary and not re.search(r"jruby|truffle|rbx|head", text):
                yield SourcedValue(text=text, path=job.path, line=line_number)


def _read_bounds(tree: SourceTree, paths: Sequence[str]) -> Iterator[VersionBounds]:
    for path in paths:
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = re.search(r"required_ruby_version\s*=\s*(.*)|^\s*ruby\s+(['\"].*)", line)
            if match and (text := (match[1] or match[2]).partition("#")[0]):
                yield VersionBounds(
                    allows=parse_constraint(text), source=SourcedValue(text=text.strip(), path=path, line=number)
                )


def _build_argv(framework: str, has_gemfile: bool) -> tuple[str, ...]:
    word = "rspec" if framework == "rspec" else "ruby"
    return ("bundle", "exec", word) if has_gemfile else (word,)


def _has_extension(tree: SourceTree, prefix: str) -> bool:
    """Return whether the project has C sources that rake-compiler builds."""
    has_task = re.search(r"ExtensionTask|rake/extensiontask", tree.read(f"{prefix}Rakefile")) is not None
    return has_task and bool(tree.glob(f"{prefix}ext/*extconf.rb"))


def _find_system_packages(tree: SourceTree, gems_found: Sequence[Gem]) -> Iterator[SourcedValue]:
    packages = find_system_packages(tree)
    for gem in gems_found:
        if header := gems.HEADERS.get(gem.source.text):
            packages.setdefault(header, SourcedValue(text=header, path=gem.source.path, line=gem.source.line))
    yield from (packages[name] for name in sorted(packages))


def _find_pin_source(tree: SourceTree, prefix: str, has_gemfile: bool) -> Evidence:
    lock = next((f"{prefix}{name}" for name in ("Gemfile.lock", "gems.locked") if tree.is_file(f"{prefix}{name}")), "")
    if lock and has_gemfile:
        return Evidence(choice="pin", value="lock file", path=lock, line=0)
    return Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES)


# ------------------------------------------------------------------------------------------------ rendering


def render_plan(draft: PlanDraft) -> BuildPlan:
    """Return the build plan of a draft; see `languages.base.Language.render_plan`."""
    uses_debian = DEBIAN_PACKAGES in draft.switches
    is_bundled = draft.test.argv[0] == "bundle"
    extra: tuple[tuple[str, str], ...] = ()
    if uses_debian:
        steps = _render_debian_steps(draft, is_bundled)
        extra = (("BUNDLE_GEMFILE", OWN_GEMFILE),) if is_bundled else ()
    elif is_bundled:
        folder = posixpath.join("/testbed", draft.test.folder).rstrip("/")
        steps = (render_registry_install("RubyGems", f"cd {shlex.quote(folder)} && bundle install --jobs 4 --retry 1"),)
        extra = (("BUNDLE_PATH", GEMS), ("BUNDLE_APP_CONFIG", f"{GEMS}/config"), ("BUNDLE_VERSION", "system"))
    else:
        names = [_render_gem_install(d.source.text) for d in draft.dependencies]
        steps = (render_registry_install("RubyGems", " && ".join([f"export GEM_HOME={GEMS}", *names])),)
        extra = (
            ("GEM_HOME", GEMS),
            ("PATH", f"{GEMS}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        )
    compiled = ("bundle exec rake compile" if is_bundled else "rake compile",) if COMPILE in draft.switches else ()
    return build_plan(replace(draft, env=(*draft.env, *extra)), steps, compiled)


def _render_gem_install(text: str) -> str:
    """Return the command that installs `name` or `name >= 2`."""
    name, _, requirement = text.partition(" ")
    version = f" --version {shlex.quote(requirement)}" if requirement else ""
    return f"gem install --no-document --conservative {shlex.quote(name)}{version}"


def _render_debian_steps(draft: PlanDraft, is_bundled: bool) -> tuple[str, ...]:
    """Return steps that install Debian packages of the gems, and write a Gemfile of them for Bundler."""
    names = [re.split(r"[ =]", d.source.text, maxsplit=1)[0] for d in draft.dependencies]
    packages = [(name, gems.list_debian_names(name)) for name in dict.fromkeys(names)]
    install = render_debian_install(packages, always=(_DEBIAN_FRAMEWORKS[draft.test.framework],))
    if not is_bundled:
        return (install,)
    framework = "" if draft.test.framework in names else draft.test.framework
    rows = [d.source.text for d in draft.dependencies] + ([framework] if framework else [])
    folder = posixpath.dirname(OWN_GEMFILE)
    write = (
        f"mkdir -p {folder} && cd {folder} && env -u BUNDLE_GEMFILE ruby -e {shlex.quote(_WRITE_GEMFILE)} "
        f"{' '.join(shlex.quote(row) for row in rows)} > Gemfile"
    )
    lock = (
        "bundle lock --local > /dev/null 2>&1 || { echo 'Bundler is given no gems'; : > Gemfile; bundle lock --local; }"
    )
    return (install, f"{write} && {{ {lock}; }} && chmod -R a+rX {folder}")
