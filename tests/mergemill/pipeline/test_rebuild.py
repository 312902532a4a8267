"""Check of rebuild tasks: facts that their statements must state, compared with the tree that the agent is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.clones import CloneStore
from backends.git import GitRepository
from backends.sandbox.docker import DockerSandbox
from backends.services import Services
from core.config import Settings
from derivers.injected.patches import build_injection_patches
from mergemill.pipeline import rebuild
from mergemill.pipeline.rebuild import check_rebuild
from mutation import build_patch
from taskdb.artifacts import Artifacts
from taskdb.records import FailureKind, Kind, Task
from taskdb.records.lineage import Lineage
from tests import records
from tests.helpers import TinyRepo
from verifiers.audit import ImageLeak

CART = """class Cart:
    def __init__(self, prices):
        self.price_list = prices
        self.discount = 0

    def total(self):
        if not self.price_list:
            raise ValueError("a cart without prices has no total at all")
        return sum(self.price_list)
"""
STUB = """class Cart:
    def __init__(self, prices):
        raise NotImplementedError

    def total(self):
        raise NotImplementedError
"""
TESTS = """import pytest

from cart import Cart


def test_list():
    assert Cart([1]).price_list == [1]


def test_none():
    with pytest.raises(ValueError, match="a cart without prices has no total at all"):
        Cart([]).total()
"""
STATEMENT = """Implement the methods of `Cart` in `cart.py`

```python
def __init__(self, prices):
def total(self):
```

The sum of the prices is returned. {}
"""
NAMED = "The attribute is `price_list`. "
MESSAGE = "The message is `a cart without prices has no total at all`. "


@dataclass(frozen=True)
class RemovedCart:
    services: Services
    lineage: Lineage
    task: Task


@pytest.fixture
def removed_cart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemovedCart:
    monkeypatch.setattr(rebuild, "audit_image", lambda _task, _services: ())
    services = Services(
        settings=Settings.model_validate({"store": tmp_path / "store"}),
        sandbox=DockerSandbox(),
        clones=CloneStore(tmp_path / "clones"),
        artifacts=Artifacts(tmp_path / "artifacts"),
    )
    repo = TinyRepo(tmp_path / "repo")
    base = repo.commit("Start", {"cart.py": CART, "tests/test_cart.py": TESTS})
    removal = build_patch("cart.py", CART.encode(), STUB.encode())
    patches = build_injection_patches(GitRepository(repo.path), base, [removal], ["tests/test_cart.py"])
    pull = records.make_pull_request(source=f"git:{repo.path}", base_commit=base)
    candidate = records.make_candidate(pull, repo="ada/greet")
    made = records.make_task(records.make_verification(records.make_environment(candidate)), candidate)
    fields = {
        "kind": Kind.REBUILD,
        "setup_patch": services.artifacts.put(patches.setup_patch),
        "gold_patch": services.artifacts.put(patches.gold_patch),
        "test_patch": services.artifacts.put(patches.test_patch),
        "FAIL_TO_PASS": tuple((f"tests/test_cart.py::test_{name}", FailureKind.ERROR) for name in ("list", "none")),
        "PASS_TO_PASS": (),
    }
    return RemovedCart(services, Lineage(candidate=candidate), made.model_copy(update=fields))


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        (NAMED + MESSAGE, None),
        (MESSAGE, "name-not-stated"),
        (NAMED, "message-not-stated"),
        (NAMED + MESSAGE + "Write `return sum(self.price_list)`.", "solution-line"),
    ],
    ids=["complete", "no-name", "no-message", "a-removed-line"],
)
def test_a_statement_must_state_what_tests_demand_of_removed_code(
    stated: str, reason: str | None, removed_cart: RemovedCart
) -> None:
    task = removed_cart.task.model_copy(update={"problem_statement": STATEMENT.format(stated)})
    rejection = check_rebuild(removed_cart.lineage, task, removed_cart.services)
    assert (rejection and str(rejection.reason)) == reason


def test_a_task_whose_image_has_the_removed_code_is_rejected(
    removed_cart: RemovedCart, monkeypatch: pytest.MonkeyPatch
) -> None:
    leak = ImageLeak(layer="sha256:1", path="opt/site-packages/greet/cart.py", description="3 added lines")
    monkeypatch.setattr(rebuild, "audit_image", lambda _task, _services: (leak,))
    task = removed_cart.task.model_copy(update={"problem_statement": STATEMENT.format(NAMED + MESSAGE)})
    rejection = check_rebuild(removed_cart.lineage, task, removed_cart.services)
    assert rejection is not None
    assert rejection.reason == "image-leaks"
    assert rejection.detail == "/opt/site-packages/greet/cart.py: 3 added lines"
