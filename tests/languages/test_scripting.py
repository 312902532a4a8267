"""Ruby, Perl, PHP and Elixir: metadata files, and the choice between registry and Debian packages."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from languages.base import Language
from languages.draft import NoPlanError, PlanDraft, PlanningContext
from languages.elixir import ELIXIR
from languages.perl import PERL, modules
from languages.php import PHP, composer
from languages.registry import get_language
from languages.ruby import RUBY, gems
from languages.scripting.debian import DEBIAN_PACKAGES, render_registry_install
from languages.scripting.versions import parse_constraint
from tests.languages.trees import build_tree


def build_context(*changed_paths: str, versions: tuple[str, ...] = ()) -> PlanningContext:
    return PlanningContext(list_available=lambda: versions, day=date(2024, 6, 1), changed_paths=changed_paths)


RUBY_VERSIONS = ("2.7", "3.1", "3.3")


@pytest.mark.parametrize(
    ("text", "allowed", "rejected"),
    [
        (">= 2.5", "3.1", "2.4"),
        (">= 2.7, < 4", "3.4", "4.0"),
        ("~> 1.10", "1.14", "2.0"),
        ("~> 3.1.0", "3.1", "3.2"),
        ("^7.4 || ^8.1", "8.2", "7.3"),
        (">=7.4 <8.3", "8.2", "8.3"),
        (">=2.12.0 <3.0.0", "2.19", "3.0"),
        ("< 3.0.1", "3.0", "3.1"),
        ("whatever", "9.9", ""),
    ],
)
def test_version_ranges_of_each_language_are_parsed(text: str, allowed: str, rejected: str) -> None:
    assert parse_constraint(text)(allowed)
    assert not rejected or not parse_constraint(text)(rejected)


def test_a_failing_registry_step_prints_its_log_and_a_successful_one_deletes_it() -> None:
    failed = subprocess.run(
        ["bash", "-c", render_registry_install("Nowhere", "echo the compiler is missing; false")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (failed.returncode, failed.stdout) == (1, "the compiler is missing\n")
    worked = subprocess.run(
        ["bash", "-c", render_registry_install("Nowhere", "echo done")], capture_output=True, text=True, check=True
    )
    assert worked.stdout == "done\n"


def test_debian_package_names_follow_naming_rules() -> None:
    assert gems.list_debian_names("rack-test") == ("ruby-rack-test",)
    assert gems.list_debian_names("i18n_data") == ("ruby-i18n-data",)
    assert modules.list_debian_names("Moo::Role") == ("libmoo-role-perl", "libmoo-perl")
    assert modules.list_debian_names("LWP::UserAgent") == ("libwww-perl",)
    assert composer.list_debian_names("symfony/yaml") == ("php-symfony-yaml", "php-yaml")
    assert composer.list_debian_names("mockery/mockery") == ("php-mockery",)
    assert composer.list_debian_names("ext-mbstring") == ("php-mbstring",)


def test_the_ruby_test_framework_is_the_one_its_helper_requires(tmp_path: Path) -> None:
    files = {
        "lib/cup.rb": "class Cup; end\n",
        "test/test_helper.rb": "require 'test/unit'\n",
        "test/test_cup.rb": "require_relative 'test_helper'\nclass CupTest < Test::Unit::TestCase\nend\n",
        "Rakefile": "spec = Gem::Specification.new do |s|\n  s.add_dependency('rexml', '>= 3.2')\nend\n",
    }
    draft = RUBY.create_draft(build_tree(tmp_path, files), build_context(versions=RUBY_VERSIONS))
    assert (draft.test.framework, draft.test.argv, draft.test.paths) == ("test-unit", ("ruby",), ("test",))
    assert [d.source.text for d in draft.dependencies] == ["rexml >= 3.2", "test-unit"]
    assert draft.versions[0].value == "3.1"  # 3.3 was released too recently
    assert RUBY.find_test_files(build_tree(tmp_path / "again", files), RUBY.render_plan(draft)) == ["test/test_cup.rb"]


def test_a_ruby_change_in_a_nested_project_is_planned_there(tmp_path: Path) -> None:
    files = {
        "Gemfile": "gem 'rake'\n",
        "test/a_test.rb": "require 'minitest/autorun'\nclass A < Minitest::Test\nend\n",
        "inner/Gemfile": "gem 'rspec'\ngem 'rack', require: 'rack/all'\ngem 'inner', path: '.'\n",
        "inner/.ruby-version": "2.7.8\n",
        "inner/lib/inner.rb": "",
        "inner/spec/inner_spec.rb": "RSpec.describe 'x' do\nend\n",
    }
    tree = build_tree(tmp_path, files)
    draft = RUBY.create_draft(tree, build_context("inner/spec/inner_spec.rb", versions=RUBY_VERSIONS))
    assert (draft.test.framework, draft.test.folder, draft.test.paths) == ("rspec", "inner", ("inner/spec",))
    assert [version.value for version in draft.versions][:1] == ["2.7"]
    assert [path for path, _ in draft.manifests] == ["inner/.ruby-version", "inner/Gemfile"]
    assert [d.source.text for d in draft.dependencies] == ["rspec", "rack=rack/all"]
    assert RUBY.create_draft(tree, build_context(versions=RUBY_VERSIONS)).test.framework == "minitest"


def apply_switch(draft: PlanDraft) -> str:
    """Return the dependency steps of the draft with Debian packages."""
    plan = get_language(draft.language).render_plan(replace(draft, switches=draft.switches | {DEBIAN_PACKAGES}))
    return "\n".join(plan.dependency_steps)


def test_perl_modules_are_read_from_metadata_and_code(tmp_path: Path) -> None:
    files = {
        "Makefile.PL": "WriteMakefile(NAME => 'A::B', VERSION => '1.0', MIN_PERL_VERSION => '5.010001',\n"
        "  PREREQ_PM => { 'Moo' => 2, 'Try::Tiny' => '0.1', 'File::Spec' => 0 },\n);\n",
        "lib/A/B.pm": "package A::B;\nuse strict;\nuse Moo;\nuse JSON::XS;\n1;\n__END__\nuse Not::Code;\n",
        "t/a.t": "use Test::More;\nuse A::B;\nok 1; done_testing;\n",
    }
    draft = PERL.create_draft(build_tree(tmp_path, files), build_context(versions=("5.32", "5.36")))
    assert [(d.source.text, d.role.value) for d in draft.dependencies] == [
        ("Moo~2", "runtime"),
        ("Try::Tiny~0.1", "runtime"),
        ("JSON::XS", "optional"),
    ]
    assert "'JSON::XS=libjson-xs-perl libjson-perl'" in apply_switch(draft)


PERL_PHASES = {
    "cpanfile": "requires 'Moo';\non 'develop' => sub {\n    requires 'Test::Spelling' => '0.12';\n};\n"
    "on test => sub { requires 'Test::Fatal'; };\nrecommends 'JSON::XS';\nsuggests 'Cpanel::JSON::XS' => '1.0';\n",
    "Makefile.PL": "my %META = (prereqs => {\n  develop => { requires => {\n    'Moose::X' => 1,\n  } },\n"
    "  runtime => {\n    requires => { 'Moo' => 2, 'Role::Tiny' => 2 },\n    recommends => {\n      'Class::XS' => 1,\n"
    "    },\n  },\n}, x_breaks => { 'Old::Thing' => '1.0' });\n",
    "dist.ini": "[Prereqs]\nTry::Tiny = 0\n[Prereqs / RuntimeRecommends]\nClone::Fast = 0\n"
    "[Prereqs / DevelopRequires]\nTest::Kwalitee = 0\n",
}


def test_perl_modules_of_developers_are_left_out_and_recommended_ones_may_be_missing(tmp_path: Path) -> None:
    files = {**PERL_PHASES, "t/a.t": "use Test::More;\nok 1; done_testing;\n"}
    draft = PERL.create_draft(build_tree(tmp_path, files), build_context(versions=("5.36",)))
    roles = {d.source.text.partition("~")[0]: d.role.value for d in draft.dependencies}
    assert roles == {
        "Moo": "runtime",
        "Test::Fatal": "runtime",
        "Role::Tiny": "runtime",
        "Try::Tiny": "runtime",
        "JSON::XS": "optional",
        "Cpanel::JSON::XS": "optional",
        "Class::XS": "optional",
        "Clone::Fast": "optional",
    }
    assert [(d.source.path, d.source.line) for d in draft.dependencies if d.source.text == "JSON::XS"] == [
        ("cpanfile", 6)
    ]


def test_phpunit_is_configured_from_the_folder_of_tests_where_the_root_has_nothing(tmp_path: Path) -> None:
    suite = "<phpunit><testsuites><testsuite name='all'><directory>{0}</directory></testsuite></testsuites></phpunit>"
    files = {
        "composer.json": '{"name": "a/b", "require-dev": {"phpunit/phpunit": "^9"}}',
        "tests/phpunit.xml.dist": suite.format("unit"),
        "tests/unit/ATest.php": "<?php class ATest extends TestCase {}",
        "tests/slow/BTest.php": "<?php class BTest extends TestCase {}",
    }
    draft = PHP.create_draft(build_tree(tmp_path / "tests", files), build_context(versions=("8.2",)))
    assert draft.test.paths == ("tests/unit",)
    assert draft.evidence[0].path == "tests/phpunit.xml.dist"
    tree = build_tree(tmp_path / "root", files | {"phpunit.xml": suite.format("tests/slow")})
    draft = PHP.create_draft(tree, build_context(versions=("8.2",)))
    assert (draft.test.paths, draft.evidence[0].path) == (("tests/slow",), "phpunit.xml")


def test_php_tests_are_those_in_the_phpunit_configuration(tmp_path: Path) -> None:
    files = {
        "composer.json": '{"name": "a/b", "require": {"php": "^8.1", "ext-dom": "*"},'
        ' "require-dev": {"phpunit/phpunit": "^9"}}',
        "phpunit.xml.dist": "<phpunit><testsuites><testsuite name='all'><directory>tests/unit</directory>"
        "</testsuite></testsuites></phpunit>",
        "tests/unit/ATest.php": "<?php class ATest {}",
        "tests/unit/BaseTest.php": "<?php\nabstract class BaseTest {}",
        "tests/slow/CTest.php": "<?php class CTest {}",
    }
    tree = build_tree(tmp_path, files)
    draft = PHP.create_draft(tree, build_context(versions=("7.4", "8.2")))
    assert (draft.test.paths, draft.versions[0].value) == (("tests/unit",), "8.2")
    assert PHP.find_test_files(tree, PHP.render_plan(draft)) == ["tests/unit/ATest.php"]
    assert "ext-dom=php-xml" in apply_switch(draft)
    assert "phpunit" in apply_switch(draft)


def test_elixir_packages_of_other_environments_are_not_required(tmp_path: Path) -> None:
    files = {
        "mix.exs": 'def project, do: [app: :a, elixir: "~> 1.12"]\ndefp deps do\n  [{:jason, "~> 1.0"},\n'
        '   {:ex_doc, ">= 0.0.0", only: :dev}, {:mox, "~> 1.0", only: [:dev, :test]}]\nend\n',
        "test/a_test.exs": "defmodule ATest do\nend\n",
    }
    draft = ELIXIR.create_draft(build_tree(tmp_path, files), build_context(versions=("1.10", "1.14")))
    assert [d.source.text for d in draft.dependencies] == ["jason", "mox"]
    assert [version.value for version in draft.versions] == ["1.14"]
    assert "mix deps.get" in ELIXIR.render_plan(draft).dependency_steps[0]
    assert ELIXIR.render_plan(replace(draft, dependencies=())).dependency_steps == ()


@pytest.mark.parametrize("language", [RUBY, PERL, PHP, ELIXIR])
def test_a_tree_without_tests_is_not_a_project(language: Language, tmp_path: Path) -> None:
    tree = build_tree(tmp_path, {"composer.json": '{"name": "a/b"}', "mix.exs": "x"})
    with pytest.raises(NoPlanError):
        language.create_draft(tree, build_context(versions=("8.2",)))
