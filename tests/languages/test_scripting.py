"""Ruby, Perl, PHP and Elixir: what their files say, and the step between a registry and Debian's packages."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from languages import elixir, perl, php, ruby
from languages.draft import Context, Draft, NoPlanError
from languages.perl import modules
from languages.php import composer
from languages.ruby import gems
from languages.scripting.debian import DEBIAN_PACKAGES, from_registry
from languages.scripting.versions import bound
from tests.languages.trees import tree_of


def context(*touched: str, versions: tuple[str, ...] = ()) -> Context:
    return Context(available=lambda: versions, day=date(2024, 6, 1), touched=touched)


RUBY = ("2.7", "3.1", "3.3")


@pytest.mark.parametrize(
    ("text", "allowed", "refused"),
    [
        (">= 2.5", "3.1", "2.4"),
        (">= 2.7, < 4", "3.4", "4.0"),
        ("~> 1.10", "1.14", "2.0"),
        ("~> 3.1.0", "3.1", "3.2"),
        ("^7.4 || ^8.1", "8.2", "7.3"),
        (">=7.4 <8.3", "8.2", "8.3"),
        ("whatever", "9.9", ""),
    ],
)
def test_ranges_are_read_as_the_languages_write_them(text: str, allowed: str, refused: str) -> None:
    assert bound(text)(allowed)
    assert not refused or not bound(text)(refused)


def test_a_step_that_fails_shows_its_log_and_one_that_works_does_not_keep_it() -> None:
    failed = subprocess.run(
        ["bash", "-c", from_registry("Nowhere", "echo the compiler is missing; false")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (failed.returncode, failed.stdout) == (1, "the compiler is missing\n")
    worked = subprocess.run(
        ["bash", "-c", from_registry("Nowhere", "echo done")], capture_output=True, text=True, check=True
    )
    assert worked.stdout == "done\n"


def test_names_of_debian_packages_follow_rules() -> None:
    assert gems.debian_names("rack-test") == ("ruby-rack-test",)
    assert gems.debian_names("i18n_data") == ("ruby-i18n-data",)
    assert modules.debian_names("Moo::Role") == ("libmoo-role-perl", "libmoo-perl")
    assert modules.debian_names("LWP::UserAgent") == ("libwww-perl",)
    assert composer.debian_names("symfony/yaml") == ("php-symfony-yaml", "php-yaml")
    assert composer.debian_names("mockery/mockery") == ("php-mockery",)
    assert composer.debian_names("ext-mbstring") == ("php-mbstring",)


def test_a_ruby_project_of_tests_is_run_by_the_framework_its_helper_names(tmp_path: Path) -> None:
    files = {
        "lib/cup.rb": "class Cup; end\n",
        "test/test_helper.rb": "require 'test/unit'\n",
        "test/test_cup.rb": "require_relative 'test_helper'\nclass CupTest < Test::Unit::TestCase\nend\n",
        "Rakefile": "spec = Gem::Specification.new do |s|\n  s.add_dependency('rexml', '>= 3.2')\nend\n",
    }
    draft = ruby.draft(tree_of(tmp_path, files), context(versions=RUBY))
    assert (draft.test.framework, draft.test.argv, draft.test.paths) == ("test-unit", ("ruby",), ("test",))
    assert [d.wanted.text for d in draft.dependencies] == ["rexml >= 3.2", "test-unit"]
    assert draft.versions[0].value == "3.1"  # 3.3 was too young
    assert ruby.defining_files(tree_of(tmp_path / "again", files), ruby.render(draft)) == ["test/test_cup.rb"]


def test_a_ruby_change_in_a_project_below_is_planned_there(tmp_path: Path) -> None:
    files = {
        "Gemfile": "gem 'rake'\n",
        "test/a_test.rb": "require 'minitest/autorun'\nclass A < Minitest::Test\nend\n",
        "inner/Gemfile": "gem 'rspec'\ngem 'rack', require: 'rack/all'\ngem 'inner', path: '.'\n",
        "inner/.ruby-version": "2.7.8\n",
        "inner/lib/inner.rb": "",
        "inner/spec/inner_spec.rb": "RSpec.describe 'x' do\nend\n",
    }
    tree = tree_of(tmp_path, files)
    draft = ruby.draft(tree, context("inner/spec/inner_spec.rb", versions=RUBY))
    assert (draft.test.framework, draft.test.folder, draft.test.paths) == ("rspec", "inner", ("inner/spec",))
    assert [one.value for one in draft.versions][:1] == ["2.7"]
    assert [path for path, _ in draft.manifests] == ["inner/.ruby-version", "inner/Gemfile"]
    assert [d.wanted.text for d in draft.dependencies] == ["rspec", "rack=rack/all"]
    assert ruby.draft(tree, context(versions=RUBY)).test.framework == "minitest"


def switched(draft: Draft) -> str:
    """The dependency steps of the draft with Debian's packages."""
    known = {"ruby": ruby, "perl": perl, "php": php, "elixir": elixir}[draft.language]
    plan = known.render(replace(draft, switches=draft.switches | {DEBIAN_PACKAGES}))
    return "\n".join(plan.dependency_steps)


def test_perl_modules_are_read_out_of_all_forms_of_metadata(tmp_path: Path) -> None:
    files = {
        "Makefile.PL": "WriteMakefile(NAME => 'A::B', VERSION => '1.0', MIN_PERL_VERSION => '5.010001',\n"
        "  PREREQ_PM => { 'Moo' => 2, 'Try::Tiny' => '0.1', 'File::Spec' => 0 },\n);\n",
        "lib/A/B.pm": "package A::B;\nuse strict;\nuse Moo;\nuse JSON::XS;\n1;\n__END__\nuse Not::Code;\n",
        "t/a.t": "use Test::More;\nuse A::B;\nok 1; done_testing;\n",
    }
    draft = perl.draft(tree_of(tmp_path, files), context(versions=("5.32", "5.36")))
    assert [(d.wanted.text, d.role.value) for d in draft.dependencies] == [
        ("Moo~2", "runtime"), ("Try::Tiny~0.1", "runtime"), ("JSON::XS", "optional"),
    ]  # fmt: skip
    assert "'JSON::XS=libjson-xs-perl libjson-perl'" in switched(draft)


def test_php_tests_are_those_of_the_configuration(tmp_path: Path) -> None:
    files = {
        "composer.json": '{"name": "a/b", "require": {"php": "^8.1", "ext-dom": "*"},'
        ' "require-dev": {"phpunit/phpunit": "^9"}}',
        "phpunit.xml.dist": "<phpunit><testsuites><testsuite name='all'><directory>tests/unit</directory>"
        "</testsuite></testsuites></phpunit>",
        "tests/unit/ATest.php": "<?php class ATest {}",
        "tests/unit/BaseTest.php": "<?php\nabstract class BaseTest {}",
        "tests/slow/CTest.php": "<?php class CTest {}",
    }
    tree = tree_of(tmp_path, files)
    draft = php.draft(tree, context(versions=("7.4", "8.2")))
    assert (draft.test.paths, draft.versions[0].value) == (("tests/unit",), "8.2")
    assert php.defining_files(tree, php.render(draft)) == ["tests/unit/ATest.php"]
    assert "ext-dom=php-xml" in switched(draft)
    assert "phpunit" in switched(draft)


def test_elixir_packages_of_other_environments_are_not_the_tests(tmp_path: Path) -> None:
    files = {
        "mix.exs": 'def project, do: [app: :a, elixir: "~> 1.12"]\ndefp deps do\n  [{:jason, "~> 1.0"},\n'
        '   {:ex_doc, ">= 0.0.0", only: :dev}, {:mox, "~> 1.0", only: [:dev, :test]}]\nend\n',
        "test/a_test.exs": "defmodule ATest do\nend\n",
    }
    draft = elixir.draft(tree_of(tmp_path, files), context(versions=("1.10", "1.14")))
    assert [d.wanted.text for d in draft.dependencies] == ["jason", "mox"]
    assert [one.value for one in draft.versions] == ["1.14"]
    assert "mix deps.get" in elixir.render(draft).dependency_steps[0]
    assert elixir.render(replace(draft, dependencies=())).dependency_steps == ()


@pytest.mark.parametrize("language", [ruby, perl, php, elixir])
def test_a_tree_without_tests_is_no_project(language: object, tmp_path: Path) -> None:
    tree = tree_of(tmp_path, {"composer.json": '{"name": "a/b"}', "mix.exs": "x"})
    with pytest.raises(NoPlanError):
        language.draft(tree, context(versions=("8.2",)))  # type: ignore[attr-defined]
