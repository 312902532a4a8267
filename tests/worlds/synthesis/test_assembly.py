"""Assembly: the golden worlds, cut into methods, are whole again; and each wrong answer is refused under its reason."""

from __future__ import annotations

import ast

import pytest

from tests.worlds.making.golden import cut_world
from worlds.examples.loading import list_example_worlds
from worlds.model_requests import RefusedAnswerError
from worlds.program.analysis import ToolKind, analyse_program
from worlds.reasons import Reason
from worlds.synthesis.assembly import ClassSkeleton, find_return_problem, read_class, read_method, unite_imports

CLASS = '''
"""A store."""
from typing import Any, ClassVar, TypedDict
import datetime as dt


class Item(TypedDict):
    item_id: str
    count: int


class Store:
    """A store."""

    LIMIT: ClassVar[int] = 5

    def __init__(self, state: dict[str, Any]) -> None:
        # counts are never negative
        self.items: dict[str, Item] = state["items"]

    def _fail(self, text: str) -> dict[str, Any]:
        return {"success": False, "error": text}
'''
METHOD = '''
import re
from typing import Any, Literal

def take_item(self, item_id: str, count: int = 1) -> dict[str, Any]:
    """Take some of an item.

    Args:
        item_id: Id of the item.
    """
    if not re.fullmatch("[A-Z]-[0-9]+", item_id) or item_id not in self.items:
        return self._fail("there is no such item")
    if count > self.LIMIT:
        return {"success": False, "error": "too many"}
    self.items[item_id]["count"] -= count
    return {"success": True, "message": "taken"}
'''


def read(source: str, *, kind: ToolKind = ToolKind.CHANGE, taken: tuple[str, ...] = ()) -> str:
    skeleton = read_class(CLASS)
    method = read_method(source, "take_item", kind, skeleton, operations=["take_item", "add_item"], taken=taken)
    return skeleton.assemble([method])


@pytest.mark.parametrize("name", list_example_worlds())
def test_a_golden_world_is_whole_again(name: str) -> None:
    cut = cut_world(name)
    skeleton = read_class(cut.class_source)
    methods = [
        read_method(source, tool, ToolKind(cut.kinds[tool]), skeleton, operations=cut.methods, taken=())
        for tool, source in cut.methods.items()
    ]
    whole, golden = analyse_program(skeleton.assemble(methods)), analyse_program(cut.world.program)
    assert not whole.violations
    assert [tool.to_json() for tool in whole.tools] == [tool.to_json() for tool in golden.tools]
    assert whole.state_schema == golden.state_schema
    assert whole.foreign_keys == golden.foreign_keys
    assert dict(whole.usage.methods) == dict(golden.usage.methods)


def test_imports_are_hoisted_and_unique_and_comments_stay() -> None:
    program = read(METHOD)
    assert program.startswith(
        '"""A store."""\n\nimport datetime as dt\nimport re\nfrom typing import Any, ClassVar, Literal, TypedDict\n\n'
    )
    assert program.count("import") == 3
    assert "# counts are never negative" in program
    methods = [node.name for node in ast.parse(program).body[-1].body if isinstance(node, ast.FunctionDef)]
    assert methods == ["__init__", "_fail", "take_item"]


def test_imports_of_one_module_are_one_line() -> None:
    nodes = ast.parse(
        "import b, a\nfrom __future__ import annotations\nfrom c import x as y\nfrom c import x\nimport a"
    ).body
    assert unite_imports(nodes) == [
        "from __future__ import annotations",
        "import a",
        "import b",
        "from c import x, x as y",
    ]


WRONG_METHODS: dict[str, tuple[str, Reason]] = {
    "another-name": (METHOD.replace("take_item", "take"), Reason.WRONG_METHOD),
    "two-methods": (
        METHOD + "\ndef add_item(self) -> dict[str, Any]:\n    return {'success': True}\n",
        Reason.WRONG_METHOD,
    ),
    "a-constant": (METHOD + "\nLIMIT = 3\n", Reason.WRONG_METHOD),
    "a-decorator": (METHOD.replace("def take", "@staticmethod\ndef take"), Reason.WRONG_METHOD),
    "a-helper-again": (METHOD + "\ndef _fail(self) -> None:\n    pass\n", Reason.WRONG_METHOD),
    "no-python": (METHOD.replace("-= count", "-= "), Reason.SYNTAX_ERROR),
    "no-types": (METHOD.replace("item_id: str", "item_id"), Reason.UNTYPED_TOOL),
    "no-docstring": (METHOD.replace('"""Take some of an item.', '"""'), Reason.UNDOCUMENTED_TOOL),
    "a-file": (METHOD.replace("if count", "open('x')\n    if count"), Reason.OPENS_FILE),
    "a-socket": (METHOD.replace("import re", "import re\nimport socket"), Reason.OPENS_SOCKET),
    "the-clock": (
        METHOD.replace("import re", "import re\nimport datetime").replace(
            "if count", "datetime.datetime.now()\n    if count"
        ),
        Reason.READS_CLOCK,
    ),
    "no-success": (METHOD.replace('{"success": True, "message": "taken"}', '{"message": "taken"}'), Reason.NO_SUCCESS),
    "returns-none": (METHOD.replace('return {"success": True, "message": "taken"}', "return None"), Reason.NO_SUCCESS),
    "unknown-attribute": (METHOD.replace("self.items[item_id]", "self.stock[item_id]"), Reason.RAISES),
    "another-kind": (METHOD.replace('"message"', '"data"'), Reason.OTHER_KIND),
}


@pytest.mark.parametrize("name", WRONG_METHODS)
def test_a_wrong_method_is_refused_under_its_reason(name: str) -> None:
    source, reason = WRONG_METHODS[name]
    with pytest.raises(RefusedAnswerError) as raised:
        read(source)
    assert raised.value.reason is reason, raised.value
    assert str(raised.value)


def test_a_method_may_bring_helpers_of_its_own_stand_in_a_class_and_call_other_operations() -> None:
    own = METHOD + "\ndef _check(self) -> bool:\n    return True\n"
    assert "def _check" in read(own)
    with pytest.raises(RefusedAnswerError, match="_check is there already"):
        read(own, taken=("_check",))
    indented = "\n".join(f"    {line}" if line else "" for line in METHOD.partition("def ")[2].splitlines())
    in_class = f"from typing import Any\nimport re\n\nclass Store:\n    def {indented.strip()}\n"
    assert read(in_class).count("class Store") == 1
    assert read(METHOD.replace('return {"success": True', 'self.add_item()\n    return {"success": True'))


WRONG_CLASSES: dict[str, tuple[str, Reason]] = {
    "a-public-method": (CLASS.replace("def _fail", "def fail"), Reason.WRONG_METHOD),
    "no-init": (CLASS.replace("__init__", "_start"), Reason.NO_WORLD_CLASS),
    "two-classes": (CLASS + "\nclass Other:\n    pass\n", Reason.NO_WORLD_CLASS),
    "no-types": (CLASS.replace("self.items: dict[str, Item] =", "self.items ="), Reason.WRONG_STATE_TYPE),
    "no-attributes": (CLASS.replace('self.items: dict[str, Item] = state["items"]', "pass"), Reason.WRONG_STATE_TYPE),
    "sets": (CLASS.replace("dict[str, Item] =", "set[str] ="), Reason.UNTYPED_TOOL),
    "wrong-key": (
        CLASS.replace("LIMIT: ClassVar[int] = 5", 'FOREIGN_KEYS = {"items.x": "y"}'),
        Reason.WRONG_FOREIGN_KEY,
    ),
    "eval": (CLASS.replace("# counts", "eval('1')\n        # counts"), Reason.EVALUATES_CODE),
    "no-python": ("class Store(", Reason.SYNTAX_ERROR),
}


@pytest.mark.parametrize("name", WRONG_CLASSES)
def test_a_wrong_class_is_refused_under_its_reason(name: str) -> None:
    source, reason = WRONG_CLASSES[name]
    with pytest.raises(RefusedAnswerError) as raised:
        read_class(source)
    assert raised.value.reason is reason, raised.value


@pytest.mark.parametrize(
    ("body", "is_fine"),
    [
        ("return {'success': True}", True),
        ("return {**found, 'x': 1}", True),
        ("return self._fail('x') if x else {'success': True}", True),
        ("return {'success': True} if x else None", False),
        ("return [1]", False),
        ("return", False),
        ("pass", False),
        ("def inner():\n        return 1\n    return {'success': True}", True),
    ],
)
def test_every_return_gives_success(body: str, is_fine: bool) -> None:
    function = ast.parse(f"def f(self, x):\n    {body}\n").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert (find_return_problem(function) == "") is is_fine


def test_the_skeleton_keeps_the_text() -> None:
    assert ClassSkeleton(source=CLASS).helpers == ["__init__", "_fail"]
