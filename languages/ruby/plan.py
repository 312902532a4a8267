"""Ruby: from a tree to a draft, and from a draft to a plan."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from languages.draft import Context, Dependency, Draft, Role
from languages.facts import Wanted
from languages.rendering import LOCAL_SETTINGS, elsewhere_evidence, plan_of, read_manifests
from languages.ruby import gems, testing
from languages.ruby.gems import Gem
from languages.ruby.releases import RELEASES
from languages.scripting.ci import system_packages
from languages.scripting.debian import DEBIAN_PACKAGES, from_debian, from_registry
from languages.scripting.versions import Bounds, bound, candidates
from languages.services import with_services
from languages.tree import Tree
from languages.workflows import jobs
from taskdb.records import BuildPlan, Evidence, TestCommand

COMPILE = "compile"
GEMS = "/opt/gems"
"""Where gems are installed, beside the interpreter."""
OWN_GEMFILE = "/opt/debian-gems/Gemfile"
_DEBIAN_FRAMEWORKS = {"rspec": "ruby-rspec", "minitest": "ruby-minitest", "test-unit": "ruby-test-unit"}
_NO_DATES = "RubyGems can only be asked for what is newest: the lock file pins, else the ranges alone"

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


def draft(tree: Tree, context: Context) -> Draft:
    """As `languages.base.Language.draft`."""
    folder = project_folder(tree, context.touched)
    paths = gems.sources(tree, folder)
    named = gems.gems(tree, paths)
    framework, files, why = testing.framework(tree, folder, named, context.touched)
    bounds = list(_bounds(tree, paths))
    versions = candidates(RELEASES, context, list(_named_versions(tree, folder)), bounds)
    at = f"{folder}/" if folder else ""
    has_gemfile = tree.is_file(f"{at}Gemfile") or tree.is_file(f"{at}gems.rb")
    tops = testing.paths_of(files, folder)
    switches = {COMPILE} if _compiles(tree, at) else set()
    libraries = ":".join(posixpath.normpath(f"/testbed/{one}") for one in testing.load_paths(tree, folder, files))
    made = Draft(
        language="ruby",
        name=next((posixpath.basename(p).removesuffix(".gemspec") for p in paths if p.endswith(".gemspec")), ""),
        versions=versions,
        day=context.day,
        exclude_newer=context.day + timedelta(days=1),
        test=TestCommand(framework=framework, argv=_argv(framework, has_gemfile), paths=tops, folder=folder),
        dependencies=tuple(_dependencies(named, framework, has_gemfile)),
        manifests=read_manifests(tree, gems.manifests(tree, folder)) if has_gemfile else (),
        system_packages=tuple(_system_packages(tree, named)),
        env=(*LOCAL_SETTINGS, ("RUBYLIB", libraries)),
        switches=frozenset(switches),
        evidence=(
            why,
            Evidence(choice="test.paths", value=" ".join(tops), path=files[0], line=0),
            _pinned_by(tree, at, has_gemfile),
            *elsewhere_evidence(tree),
        ),
    )
    return with_services(made, jobs(tree))


def project_folder(tree: Tree, touched: Sequence[str]) -> str:
    """The deepest folder with a Gemfile or gemspec that all touched tests lie in; else the root, as ``."""
    about = [path for path in touched if re.search(f"{testing.SPEC_FILE}|{testing.TEST_FILE}", path)]
    about = about or [path for path in touched if path.endswith(".rb")]
    roots = {posixpath.dirname(path) for path in tree.entries if re.search(r"(^|/)(Gemfile|[^/]+\.gemspec)$", path)}
    holding = [root for root in roots if root and about and all(path.startswith(f"{root}/") for path in about)]
    return max(holding, key=len, default="")


def _dependencies(named: Sequence[Gem], framework: str, has_gemfile: bool) -> Iterator[Dependency]:
    """The gems that files name; Bundler reads those of a Gemfile itself."""
    role = Role.OPTIONAL if has_gemfile else Role.RUNTIME
    for gem in named:
        text = f"{gem.wanted.text} {gem.requirement}".strip() if not has_gemfile else gem.wanted.text
        required = f"={gem.required}" if has_gemfile and gem.required else ""
        yield Dependency(role=role, wanted=Wanted(text=text + required, path=gem.wanted.path, line=gem.wanted.line))
    if framework not in {gem.wanted.text for gem in named} and not has_gemfile:
        yield Dependency(role=Role.TEST, wanted=Wanted(text=framework, path="(framework)"))


def _named_versions(tree: Tree, folder: str) -> Iterator[Wanted]:
    """Versions that files name, the most trusted file first."""
    places = [
        f"{at}{name}" for at in dict.fromkeys([f"{folder}/" if folder else "", ""]) for name in (".ruby-version",)
    ]
    for path in places:
        if text := tree.read(path).strip():
            yield Wanted(text=text, path=path, line=1)
    for number, line in enumerate(tree.read(".tool-versions").splitlines(), 1):
        if line.startswith("ruby "):
            yield Wanted(text=line, path=".tool-versions", line=number)
    for job in jobs(tree):
        keys = ("ruby-version", "ruby", "ruby_version", "rvm")
        found = [(value.text, value.line) for name in keys for value in job.values.get(name, ())]
        found += [(use.text, use.line) for use in job.uses if re.search(r"(^|/)ruby:\d", use.text)]
        for text, at in found:
            if not job.is_beside and not re.search(r"jruby|truffle|rbx|head", text):
                yield Wanted(text=text, path=job.path, line=at)


def _bounds(tree: Tree, paths: Sequence[str]) -> Iterator[Bounds]:
    for path in paths:
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            match = re.search(r"required_ruby_version\s*=\s*(.*)|^\s*ruby\s+(['\"].*)", line)
            if match and (text := (match[1] or match[2]).partition("#")[0]):
                yield Bounds(allows=bound(text), wanted=Wanted(text=text.strip(), path=path, line=number))


def _argv(framework: str, has_gemfile: bool) -> tuple[str, ...]:
    word = "rspec" if framework == "rspec" else "ruby"
    return ("bundle", "exec", word) if has_gemfile else (word,)


def _compiles(tree: Tree, at: str) -> bool:
    """Whether the project has C sources that rake-compiler builds."""
    has_task = re.search(r"ExtensionTask|rake/extensiontask", tree.read(f"{at}Rakefile")) is not None
    return has_task and bool(tree.glob(f"{at}ext/*extconf.rb"))


def _system_packages(tree: Tree, named: Sequence[Gem]) -> Iterator[Wanted]:
    found = system_packages(tree)
    for gem in named:
        if header := gems.HEADERS.get(gem.wanted.text):
            found.setdefault(header, Wanted(text=header, path=gem.wanted.path, line=gem.wanted.line))
    yield from (found[name] for name in sorted(found))


def _pinned_by(tree: Tree, at: str, has_gemfile: bool) -> Evidence:
    lock = next((f"{at}{name}" for name in ("Gemfile.lock", "gems.locked") if tree.is_file(f"{at}{name}")), "")
    if lock and has_gemfile:
        return Evidence(choice="pin", value="lock file", path=lock, line=0)
    return Evidence(choice="pin", value="ranges", path="(registry)", line=0, note=_NO_DATES)


# ------------------------------------------------------------------------------------------------ rendering


def render(made: Draft) -> BuildPlan:
    """As `languages.base.Language.render`."""
    from_distribution = DEBIAN_PACKAGES in made.switches
    is_bundled = made.test.argv[0] == "bundle"
    extra: tuple[tuple[str, str], ...] = ()
    if from_distribution:
        steps = _debian_steps(made, is_bundled)
        extra = (("BUNDLE_GEMFILE", OWN_GEMFILE),) if is_bundled else ()
    elif is_bundled:
        folder = posixpath.join("/testbed", made.test.folder).rstrip("/")
        steps = (from_registry("RubyGems", f"cd {shlex.quote(folder)} && bundle install --jobs 4 --retry 1"),)
        extra = (("BUNDLE_PATH", GEMS), ("BUNDLE_APP_CONFIG", f"{GEMS}/config"), ("BUNDLE_VERSION", "system"))
    else:
        names = [_install(d.wanted.text) for d in made.dependencies]
        steps = (from_registry("RubyGems", " && ".join([f"export GEM_HOME={GEMS}", *names])),)
        extra = (
            ("GEM_HOME", GEMS),
            ("PATH", f"{GEMS}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        )
    compiled = ("bundle exec rake compile" if is_bundled else "rake compile",) if COMPILE in made.switches else ()
    return plan_of(replace(made, env=(*made.env, *extra)), steps, compiled)


def _install(text: str) -> str:
    """The line that installs `name` or `name >= 2`."""
    name, _, requirement = text.partition(" ")
    version = f" --version {shlex.quote(requirement)}" if requirement else ""
    return f"gem install --no-document --conservative {shlex.quote(name)}{version}"


def _debian_steps(made: Draft, is_bundled: bool) -> tuple[str, ...]:
    """Debian's packages of the gems, and a Gemfile that names those that are there, for what asks Bundler."""
    names = [re.split(r"[ =]", d.wanted.text, maxsplit=1)[0] for d in made.dependencies]
    wanted = [(name, gems.debian_names(name)) for name in dict.fromkeys(names)]
    install = from_debian(wanted, always=(_DEBIAN_FRAMEWORKS[made.test.framework],))
    if not is_bundled:
        return (install,)
    framework = "" if made.test.framework in names else made.test.framework
    rows = [d.wanted.text for d in made.dependencies] + ([framework] if framework else [])
    folder = posixpath.dirname(OWN_GEMFILE)
    write = (
        f"mkdir -p {folder} && cd {folder} && env -u BUNDLE_GEMFILE ruby -e {shlex.quote(_WRITE_GEMFILE)} "
        f"{' '.join(shlex.quote(row) for row in rows)} > Gemfile"
    )
    lock = (
        "bundle lock --local > /dev/null 2>&1 || { echo 'Bundler is given no gems'; : > Gemfile; bundle lock --local; }"
    )
    return (install, f"{write} && {{ {lock}; }} && chmod -R a+rX {folder}")
