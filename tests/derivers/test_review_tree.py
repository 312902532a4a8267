"""Reviews and the tree around them: related files, defects between files, and lines that are fixed later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from derivers.review.cross_file import list_calls
from derivers.review.related import MAX_RELATED
from taskdb.records.oracles import Defect, LaterFix, MaterialSize, ReviewOracle
from tests.derivers.review_helpers import (
    PADDING,
    RIGHT,
    TOTAL,
    create_services,
    derive_forms,
    derive_reviews,
    get_oracle,
)
from tests.helpers import TinyRepo

SUMS = PADDING.lstrip() + "\n\n" + TOTAL + PADDING
FIXED = SUMS.replace(TOTAL, RIGHT)
AT = SUMS.split("\n").index("    for i in range(len(items) - 1):") + 1


def derive(repo: TinyRepo, folder: Path, base: str, merge: str) -> dict[str, ReviewOracle]:
    """Return form -> oracle of the reviews of a fix."""
    return {form: get_oracle(task) for form, task in derive_forms(derive_reviews(repo, folder, base, merge)).items()}


def list_related(folder: Path, oracle: ReviewOracle) -> list[str]:
    return list(oracle.load_related(create_services(folder).artifacts))


# ------------------------------------------------------------------------------------------------- tree and related


def test_a_review_has_the_tree_that_its_files_are_of_and_the_files_next_to_them_by_imports(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    files = {
        "shop/sums.py": "from shop.money import round_up\n" + PADDING,
        "shop/money.py": "from .units import CENT\n\n\ndef round_up(x):\n    return x + CENT\n",
        "shop/units.py": "CENT = 1\n",
        "web/bills.py": "from shop import sums\n",
        "web/both.py": "from shop import sums\nfrom shop import rates\n",
        "shop/rates.py": "RATE = 1\n",
        "shop/far.py": "# sums are elsewhere\n",
        "tests/test_sums.py": "from shop import sums\n",
    }
    repo.commit("Begin", files)
    introduced = repo.commit("Add totals", {"shop/sums.py": files["shop/sums.py"] + TOTAL})
    base = repo.commit("Explain", {"README.md": "# shop\n"})
    merge = repo.commit("Fix", {"shop/sums.py": files["shop/sums.py"] + RIGHT, "shop/later.py": "import shop.sums\n"})
    oracles = derive(repo, tmp_path, base, merge)
    assert {form: oracle.tree for form, oracle in oracles.items()} == {"before-fix": base, "diff": introduced}
    assert list_related(tmp_path, oracles["diff"]) == [
        "shop/money.py",
        "web/bills.py",
        "web/both.py",
        "shop/units.py",
        "shop/rates.py",
    ]
    diff = oracles["diff"]
    artifacts = create_services(tmp_path).artifacts
    texts = [files["shop/sums.py"] + TOTAL, artifacts.get_text(diff.diff or "")]
    texts += [files[path] for path in list_related(tmp_path, diff)]
    assert diff.material == MaterialSize(files=6, n_bytes=sum(len(text.encode()) for text in texts))


def test_related_files_are_those_of_all_files_under_review_and_are_limited(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    users = {f"web/user_{n:02}.py": "import shop.sums\n" for n in range(MAX_RELATED + 5)}
    large = {"shop/large.py": "X = 1\n" * 5_950}
    base = repo.commit("Begin", {"shop/sums.py": "import shop.large\n" + SUMS, **users, **large})
    merge = repo.commit("Fix", {"shop/sums.py": "import shop.large\n" + FIXED})
    related = list_related(tmp_path, derive(repo, tmp_path, base, merge)["before-fix"])
    assert len(related) == MAX_RELATED
    assert not {"shop/large.py", "shop/sums.py"} & set(related)


# -------------------------------------------------------------------------------------------------- between files

MONEY = "def round_up(amount, unit):\n    return amount + unit\n" + PADDING
MORE = "\n\ndef cut(amount):\n    return amount - 1\n"
SWAPPED = MONEY.replace("(amount, unit)", "(unit, amount)") + MORE
USER = "from shop.money import round_up\n\n\ndef price(x):\n    y = round_up(x, 5)\n    return y\n" + PADDING


def make_defect(path: str, text: str, line: str) -> tuple[Defect, ...]:
    at = text.split("\n").index(line) + 1
    return (Defect(path=path, first_line=at, last_line=at, claim="Totals are too small"),)


def test_a_change_of_a_signature_is_at_fault_where_the_fix_adapts_an_older_call_in_another_file(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    repo.commit("Begin", {"shop/money.py": MONEY, "shop/price.py": USER})
    broke = repo.commit("Swap", {"shop/money.py": SWAPPED})
    base = repo.commit("Explain", {"README.md": "# shop\n"})
    merge = repo.commit("Fix", {"shop/price.py": USER.replace("(x, 5)", "(5, x)")})
    oracles = derive(repo, tmp_path, base, merge)
    assert set(oracles) == {"before-fix", "cross-file"}
    oracle = oracles["cross-file"]
    assert oracle.tree == broke
    assert oracle.defects == make_defect("shop/money.py", SWAPPED, "def round_up(unit, amount):")
    assert list_related(tmp_path, oracle) == ["shop/price.py"]


def test_a_new_signature_is_at_fault_where_a_file_outside_of_the_change_calls_it(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    repo.commit("Begin", {"shop/money.py": MONEY, "shop/price.py": USER})
    base = repo.commit("Swap", {"shop/money.py": SWAPPED})
    merge = repo.commit("Fix", {"shop/money.py": MONEY + MORE})
    assert derive(repo, tmp_path, base, merge)["cross-file"].defects == make_defect(
        "shop/money.py", SWAPPED, "def round_up(unit, amount):"
    )


def test_a_wrong_call_of_a_function_of_another_file_is_a_defect_between_files(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    repo.commit("Begin", {"shop/money.py": MONEY, "shop/price.py": PADDING.lstrip()})
    wrong = USER.replace("(x, 5)", "(5, x)")
    base = repo.commit("Add prices", {"shop/price.py": wrong})
    merge = repo.commit("Fix", {"shop/price.py": USER})
    assert derive(repo, tmp_path, base, merge)["cross-file"].defects == make_defect(
        "shop/price.py", wrong, "    y = round_up(5, x)"
    )


@pytest.mark.parametrize(
    ("first", "introduced", "fixed"),
    [
        # the call stays as it is: the fault is in what is done with its result
        ({"shop/money.py": MONEY}, {"shop/price.py": USER}, {"shop/price.py": USER.replace("y = ", "y = -")}),
        # the function is of the same change
        ({}, {"shop/money.py": MONEY, "shop/price.py": USER}, {"shop/price.py": USER.replace("(x, 5)", "(5, x)")}),
        # two files define the function
        (
            {"shop/money.py": MONEY, "shop/old_money.py": MONEY},
            {"shop/price.py": USER},
            {"shop/price.py": USER.replace("(x, 5)", "(5, x)")},
        ),
        # nobody else calls it
        (
            {"shop/money.py": MONEY, "shop/notes.py": "# round_up is not called\n" + PADDING},
            {"shop/money.py": SWAPPED},
            {"shop/money.py": MONEY + MORE},
        ),
        # the change adapts all callers
        (
            {"shop/money.py": MONEY, "shop/price.py": USER},
            {"shop/money.py": SWAPPED, "shop/price.py": USER.replace("(x, 5)", "(5, x)")},
            {"shop/money.py": MONEY + MORE},
        ),
        # no caller can see the annotation
        (
            {"shop/money.py": MONEY, "shop/price.py": USER},
            {"shop/money.py": MONEY.replace("unit)", "unit: str)") + MORE},
            {"shop/money.py": MONEY.replace("unit)", "unit: int)") + MORE},
        ),
    ],
    ids=["result", "same change", "two definitions", "no caller", "adapted callers", "annotation"],
)
def test_other_defects_are_not_between_files(
    first: dict[str, str], introduced: dict[str, str], fixed: dict[str, str], tmp_path: Path
) -> None:
    repo = TinyRepo(tmp_path / "shop")
    repo.commit("Begin", {"README.md": "# shop\n", **first})
    base = repo.commit("Introduce", introduced)
    assert "diff" in derive(repo, tmp_path, base, repo.commit("Fix", fixed))


def test_calls_are_found_by_their_form_and_not_in_definitions() -> None:
    text = "func (s *Shop) total(a int) {\n  s.add(one( 1,\n    2), x)\n}\nfunction far(a) {}\ndef near(b): cut(1"
    assert list_calls(text) == [("add", "(one(1,2),x)", 1), ("one", "(1,2)", 1), ("cut", "(1", 5)]


# ------------------------------------------------------------------------------------------------------ fixed later


def test_lines_that_are_fixed_later_are_kept_beside_the_defects(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    repo.commit("Begin", {"shop/sums.py": PADDING.lstrip()})
    half = "def half(n):\n    m = n // 2\n    return m\n"
    late = "def late(n):\n    return n * 3\n"
    introduced = repo.commit("Add", {"shop/sums.py": PADDING.lstrip() + TOTAL + PADDING + half + late})
    before = PADDING.lstrip().replace("x + 2", "x + 22")
    base = repo.commit("Fix the second helper", {"shop/sums.py": before + TOTAL + PADDING + half + late})
    fixed = before + RIGHT + PADDING
    merge = repo.commit("Fix totals", {"shop/sums.py": fixed + half + late})
    half = half.replace("n // 2", "n / 2")
    repo.commit("Fix half of odd numbers (#9)\n\nIt was cut.", {"shop/sums.py": "# sums\n" + fixed + half + late})
    repo.commit("Fix typo", {"shop/sums.py": "# sums\n" + fixed + half + late.replace("3", "4")})
    repo.commit("Add more", {"shop/sums.py": "# sums\n" + fixed + half + late.replace("3", "5")})
    oracles = derive(repo, tmp_path, base, merge)
    text = repo.git("show", f"{introduced}:shop/sums.py")
    at = text.split("\n").index("    m = n // 2") + 1
    message = "Fix half of odd numbers (#9)"
    assert oracles["diff"].others == (LaterFix(path="shop/sums.py", first_line=at, last_line=at, message=message),)
    assert oracles["before-fix"].others == oracles["diff"].others


def test_lines_of_known_defects_are_not_kept_as_fixed_later(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    text = SUMS + "\n\ndef half(n):\n    m = n // 2\n    return m\n"
    base = repo.commit("Begin", {"shop/sums.py": text})
    checked = text.replace("    return m\n", "    if n < 0:\n        raise ValueError(n)\n    return m\n")
    merge = repo.commit("Fix negative numbers", {"shop/sums.py": checked})
    repo.commit("Fix odd numbers", {"shop/sums.py": checked.replace("n // 2", "n / 2")})
    oracle = derive(repo, tmp_path, base, merge)["before-fix"]
    assert [defect.last_line - defect.first_line for defect in oracle.defects] == [1]
    assert oracle.others == ()


def test_what_is_fixed_later_does_not_identify_a_task(tmp_path: Path) -> None:
    repo = TinyRepo(tmp_path / "shop")
    base = repo.commit("Begin", {"shop/sums.py": SUMS})
    merge = repo.commit("Fix totals", {"shop/sums.py": FIXED})
    tasks = [derive_forms(derive_reviews(repo, tmp_path, base, merge))["before-fix"]]
    repo.commit("Fix a helper", {"shop/sums.py": FIXED.replace("x + 2", "x - 2", 1)})
    tasks += [derive_forms(derive_reviews(repo, tmp_path, base, merge))["before-fix"]]
    assert [len(get_oracle(task).others) for task in tasks] == [0, 1]
    assert tasks[0].id == tasks[1].id
    hidden = json.dumps(get_oracle(tasks[1]).model_dump(mode="json", include={"others"}))
    assert "Fix a helper" in hidden
    assert "Fix a helper" not in tasks[1].problem_statement
