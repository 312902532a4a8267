"""The table of forms of patches is that of the tests' cases."""

from __future__ import annotations

import importlib.machinery
import importlib.util

from tests.docs.test_examples import ROOT


def test_the_table_of_forms_of_patches_is_what_the_script_writes() -> None:
    loader = importlib.machinery.SourceFileLoader("patch_forms", str(ROOT / "scripts" / "patch-forms"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    script = importlib.util.module_from_spec(spec)
    loader.exec_module(script)
    table = script.PAGE.read_text().partition(script.BEGIN)[2].partition(script.END)[0]
    assert table == script.render_table(), "run scripts/patch-forms"
