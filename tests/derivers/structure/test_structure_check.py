"""The check of structures: definitions and imports in several languages, found by their shape."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from guest.harness.structure import structure_check
from guest.harness.structure.structure_check import has_definition, imports_module, names_package, uses_module
from mutation.definitions import list_definitions

DEFINING = {
    "a.py": ("class Cart:\n    def total(self):\n        def inner(): pass\n", ("Cart", "Cart.total")),
    "a.go": ("package a\n\ntype Cart struct{}\n\nfunc (c *Cart) Total() int {\n\treturn 1\n}\n", ("Cart", "Total")),
    "a.js": ("const sum = (a) => a;\nclass Cart {\n  total(x) {\n    return sum(x);\n  }\n}\n", ("sum", "Cart.total")),
    "a.ts": (
        "export interface Item { price: number }\nexport function total(a: Item[]): number {\n  return 1;\n}\n",
        ("Item", "total"),
    ),
    "a.rs": ("pub struct Cart;\nimpl Cart {\n    pub fn total(&self) -> u32 { 1 }\n}\n", ("Cart", "Cart.total")),
    "A.java": ("class Cart {\n  public int total(int a) throws E {\n    return a;\n  }\n}\n", ("Cart", "Cart.total")),
    "a.rb": ("class Cart\n  def total(x)\n    x\n  end\nend\n", ("Cart", "Cart.total")),
    "a.c": ("static int total(int a) {\n  return a;\n}\n", ("total",)),
}


@pytest.mark.parametrize("path", DEFINING)
def test_definitions_are_found_by_syntax_tree_and_by_shape(path: str) -> None:
    text, names = DEFINING[path]
    assert set(names) <= set(list_definitions(path, text.encode()))
    for name in names:
        assert has_definition(path, text, name), name
    assert not has_definition(path, text, "absent")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", '"""\ndef total():\n"""\n# def total():\nx = total()\n'),
        ("a.py", "def outer():\n    def total(): pass\n"),
        ("a.go", "// func total() {}\nvar s = `func total() {}`\nfunc f() {\n\tif total(1) {\n\t}\n}\n"),
        ("a.js", "/* function total() {} */\nif (total(1)) {\n}\nreturn total(x);\n"),
    ],
)
def test_calls_comments_and_strings_define_nothing(path: str, text: str) -> None:
    assert not has_definition(path, text, "total")


@pytest.mark.parametrize("text", ["-" * 200_000 + "1", "a" + ".b" * 100_000])
def test_code_that_is_nested_too_deeply_defines_and_imports_nothing(text: str) -> None:
    assert not has_definition("a.py", text, "a")
    assert not imports_module("a.py", text, "os")


def test_imports_and_packages_are_found_by_whole_names() -> None:
    assert imports_module("a.py", "from os import path\n", "os.path")
    assert not imports_module("a.py", "import sixteen\n# import six\n", "six")
    assert imports_module("a.go", 'import (\n\t"fmt"\n\tx "github.com/pkg/errors"\n)\n', "github.com/pkg/errors")
    assert imports_module("a.js", "const _ = require('lodash/map');\n", "lodash")
    assert imports_module("a.rs", "use chrono::Utc;\n", "chrono")
    assert names_package('dependencies = ["Typing_Extensions>=4"]', "typing-extensions")
    assert not names_package('dependencies = ["six-extra"]\n# six', "six")


USES = {
    "a.py": ("import new\n", "new.run()\n"),
    "b.py": ("from new.sub import run as go\n", "print(go)\n"),
    "a.go": ('import _ "new"\n', 'import "new"\n'),
    "a.js": ("const { run: go } = require('new');\n", "go();\n"),
    "b.js": ("import def, { a as b } from 'new';\n// b\n", "const c = def(1);\n"),
    "c.js": ("import 'new';\nrequire('new');\n", "const x = require('new').x;\n"),
    "d.ts": ('import * as all from "new";\n', "export { one } from 'new';\n"),
    "a.rs": ("use new::{Run, other::Go as Went};\n", "fn f(x: Went) {}\n"),
    "b.rs": ("use new;\n", "pub use new::Run;\n"),
    "A.java": ("import new.sub.Run;\n// Run\n", "class A { Run run; }\n"),
}
"""Path -> an import that is not used, and what makes it used."""


@pytest.mark.parametrize("path", USES)
def test_an_import_is_used_where_a_name_that_it_binds_occurs(path: str) -> None:
    unused, use = USES[path]
    assert imports_module(path, unused, "new")
    assert not uses_module({path: unused}, "new")
    assert uses_module({path: unused + use}, "new")


def test_a_name_may_be_handed_on_to_another_file() -> None:
    compat = {"shop/compat.py": "from new import run\n"}
    assert not uses_module(compat | {"shop/main.py": "from new import other\n\nrun()\n"}, "new")
    assert uses_module(compat | {"shop/main.py": "from .compat import run\n"}, "new")
    assert uses_module({"shop/__init__.py": "from new import run\n", "main.py": "from shop import run\n"}, "new")


def test_the_check_runs_as_a_script_of_the_standard_library_alone(tmp_path: Path) -> None:
    (tmp_path / "tree" / "shop").mkdir(parents=True)
    (tmp_path / "tree" / "shop" / "tags.py").write_text("import six\n\n\ndef label(): ...\n")
    rules = {"required": [["shop/tags.py", "label"]], "gone": [["shop/tags.py", "old"]], "old_modules": ["six"]}
    (tmp_path / "rules.json").write_text(json.dumps(rules))
    command = [sys.executable, "-I", "-S", structure_check.__file__, tmp_path / "rules.json", tmp_path / "tree"]
    ran = subprocess.run(command, capture_output=True, check=False)
    assert (ran.returncode, json.loads(ran.stdout)) == (1, ["shop/tags.py: six is still imported"]), ran.stderr
    (tmp_path / "tree" / "shop" / "tags.py").write_text("def label(): ...\n")
    ran = subprocess.run(command, capture_output=True, check=False)
    assert (ran.returncode, json.loads(ran.stdout)) == (0, [])
