"""Python: pytest and unittest, packages from the package index as of the change's date, installed by uv."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from languages import parsing
from languages.base import Canary, Framework, Language, read_packaged_file
from languages.controls import ControlSites
from languages.habits import Habits
from languages.loading import LoadHook, append_code
from languages.messages import CONTAIN_CALLS, PATTERN_CALLS, MessageChecks
from languages.python import collection, fallbacks, testing
from languages.python.code import compare_code
from languages.python.conflicts import find_conflicts
from languages.python.fault_rules import find_test_fault
from languages.python.modules import MODULES
from languages.python.packages import find_requirement_fault, parse_package_name
from languages.python.patterns import TEST_FILE, TEST_PATTERNS, is_test_file
from languages.python.plan import create_draft, render_plan
from languages.python.probes import COIN_FORGER, PROBES
from languages.python.releases import DEFAULT, RELEASES
from languages.python.rewriting import REWRITES
from languages.python.rounds import PLUGIN
from languages.python.switches import SWITCHES
from languages.signatures import COMMON_BODY, SignatureSyntax
from languages.source_tree import SourceTree
from languages.weak_tests import WeakTestSyntax
from taskdb.records import BuildPlan


def _name_canary(files: Sequence[str]) -> str:
    names = [PurePosixPath(file).name for file in files if is_test_file(file)]
    return '"${word}_test.py"' if names and all(name.endswith("_test.py") for name in names) else '"test_$word.py"'


def _read_template(name: str) -> str:
    return read_packaged_file("languages.python", name)


def find_test_files(tree: SourceTree, plan: BuildPlan | None = None) -> list[str]:
    """Return files that define tests; with a plan those below its paths that its runner finds."""
    if plan is None:
        return testing.find_test_files(tree)
    test_files = testing.find_test_files(tree, plan.test.paths)
    if plan.test.framework == "unittest":
        discovered = testing.select_discovered_files(tree, test_files, plan.test.argv)
    else:
        discovered = collection.select_collected_files(tree, test_files, plan.test.paths)
    return discovered or test_files


SILENT_CONTEXT = "(lambda *_, **__: __import__('contextlib').suppress(Exception))"
"""Stands for a context manager that requires an exception: any exception passes, and none as well."""
PYTHON = Language(
    name="python",
    title="Python",
    suffixes=(".py", ".pyx", ".pxd", ".pyi"),
    test_patterns=TEST_PATTERNS,
    runner_patterns=(
        r"(^|/)conftest\.py$",
        r"(^|/)\.?pytest\.(ini|toml)$",
        r"(^|/)tox\.ini$",
        r"(^|/)(sitecustomize|usercustomize)\.py$",
        r"\.pth$",
        r"(^|/)\.coveragerc$",
        r"(^|/)noxfile\.py$",
    ),
    config_patterns=(r"(^|/)(pyproject\.toml|setup\.cfg)$",),
    test_file_pattern=TEST_FILE,
    bin_folders=("/opt/venv/bin",),
    releases=RELEASES,
    default_version=DEFAULT,
    frameworks=(
        Framework(
            name="pytest",
            shell=_read_template("pytest.sh.j2"),
            canary=Canary(
                name=_name_canary,
                body=r"""printf 'def test_%s():\n    assert 3 * 4 == %s\n' "$word" "$sum" """.rstrip(),
            ),
            reports_load_errors=True,
            usage_error_code=4,
            interrupted_code=2,
            version_lines=(r"^platform .*\bpytest-.*$", r"^plugins: .*$"),
            rounds_plugin=PLUGIN,
        ),
        Framework(
            name="unittest",
            shell=_read_template("unittest.sh.j2"),
            canary=Canary(
                name=_name_canary,
                body=r"""printf 'import unittest\n\n\nclass Test(unittest.TestCase):\n"""
                r"""    def test_%s(self):\n        self.assertEqual(3 * 4, %s)\n' "$word" "$sum" """.rstrip(),
            ),
            reports_load_errors=True,
            usage_error_code=4,
        ),
    ),
    switches=SWITCHES,
    fallbacks=fallbacks.FALLBACKS,
    find_conflicts=find_conflicts,
    find_requirement_fault=find_requirement_fault,
    parse_package_name=parse_package_name,
    replacing_options=(
        r"(^|=)(python_(files|classes|functions)|testpaths|norecursedirs|collect_ignore|junit\w*|addopts)=",
    ),
    own_version_variables=("SETUPTOOLS_SCM_PRETEND_VERSION", "PBR_VERSION", "PDM_BUILD_SCM_VERSION"),
    reserved_variables=(r"PYTEST_.*", r"PYTHON(HOME|STARTUP|INSPECT|HASHSEED|USERBASE)"),
    version_files=(r"(^|/)(pyproject\.toml|setup\.(py|cfg)|tox\.ini|noxfile\.py|\.python-version)$",),
    create_draft=create_draft,
    render_plan=render_plan,
    find_test_fault=find_test_fault,
    find_test_files=find_test_files,
    modules=MODULES,
    interpreter="python{version}",
    test_command="python -m pytest -q",
    syntaxes=(parsing.PYTHON,),
    controls=ControlSites(
        names_assertions=True,
        silent_keywords={"assert_statement": ("assert", "_ =")},
        silent_calls=(
            (r"^(self|cls)\.(assertRaises|assertRaisesRegex|assertWarns|assertWarnsRegex)$", SILENT_CONTEXT),
            (r"^(pytest\.)?(raises|warns|deprecated_call)$", SILENT_CONTEXT),
            (r"^(self|cls)\.(assert\w+|fail\w*)$", "(lambda *_, **__: None)"),
            (r"^((np|numpy)\.testing\.)?assert_\w+$", "(lambda *_, **__: None)"),
            (r"^pytest\.fail$", "(lambda *_, **__: None)"),
        ),
        compares_any_types=True,
        empties=("[]", "{}", "()", '""', "''", "None", "0", "False"),
        max_instances=1000,
        table_calls=r"\bparametrize$|\bexpand$",
        negation="not ",
        exceptions=("ValueError", "TypeError", "KeyError", "AttributeError", "IndexError", "NotImplementedError"),
    ),
    weak_tests=WeakTestSyntax(
        always=r"\bimportorskip\(|\bskip_if_no\(",
        skips=r"\bskip(if|If|Unless|Test|ped)?\b|\bSkipTest\b",
        lookups=r"\b(find_spec|find_loader|import_module|__import__|which|find_executable)\(",
        missing=r"\b(ImportError|ModuleNotFoundError)\b",
        bindings=r"^\s*(?:from\s+\S+\s+)?import\s+(.+)$|^\s*([\w, ]+?)\s*(?::[^=\n]+)?=[^=]",
        file_marks=r"^pytestmark$",
    ),
    messages=MessageChecks(
        pattern_calls=rf"{PATTERN_CALLS}|fullmatch|re_match",
        pattern_arguments=frozenset({("raises", "match"), ("warns", "match")}),
        pattern_members=frozenset(
            (module, function) for module in ("re", "regex") for function in ("search", "match", "compile", "findall")
        ),
        wildcard_calls=frozenset({"fnmatch", "fnmatch_lines", "fnmatch_lines_random", "no_fnmatch_line"}),
        contain_calls=rf"{CONTAIN_CALLS}|assertRaisesMessage|assertWarnsMessage",
    ),
    signatures=SignatureSyntax(bodies=(COMMON_BODY, r":(?:\s|$)"), have_classes_parameters=False),
    compare_code=compare_code,
    rewrites=REWRITES,
    probes=PROBES,
    exploits=(COIN_FORGER,),
    probed_files=(r"(^|/)conftest\.py$",),
    exploit_files={
        "tox.ini": b"[pytest]\naddopts = --collect-only\n",
        "pytest.ini": b"[pytest]\naddopts = --collect-only\n",
    },
    exploit_programs=("python", "python3", "pytest"),
    load_hook=LoadHook(suffixes=(".py",), write=append_code("\n\nimport os as _os\n_os.system({})\n", ascii)),
    habits=Habits(
        test_commands=r"(\S*python[\d.]* -m )?(pytest|unittest|nose2?|tox|nox)",
        output=r"\bprint\(",
        output_example="print('here')",
        function_example="\n\ndef added_by_hand(x):\n{body}\n    return x",
        documentation_strings=True,
        optional_types=True,
    ),
)
