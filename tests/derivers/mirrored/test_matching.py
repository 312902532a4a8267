"""Which change of another project fits which file."""

from __future__ import annotations

from core.word_parts import compare_words, list_word_parts, weigh_words
from derivers.mirrored.matching import ChangeModel, match_models
from tests import records
from tests.derivers.injected.test_tasks import CART, LABEL
from tests.derivers.mirrored.answers import GOLD, STATEMENT

SOURCES = {"cart/cart.py": CART.encode(), "cart/label.py": LABEL.encode()}
OTHER_GOLD = """diff --git a/app/session.py b/app/session.py
--- a/app/session.py
+++ b/app/session.py
@@ -9,4 +9,4 @@ def renew(session):
-    session.expires = cookie.expires
+    session.expires = cookie.expires + 60
"""


def make_model(number: int, statement: str, gold: str) -> ChangeModel:
    candidate = records.make_candidate(records.make_pull_request(number), problem_statement=statement)
    return ChangeModel(candidate=candidate, gold_patch=gold, test_patch="")


def test_words_are_parts_of_identifiers_without_common_ones() -> None:
    words = list_word_parts("def parseHTTPHeader(raw_headers): return self.totalPrices")
    assert dict(words) == {"parse": 1, "http": 1, "header": 2, "total": 1, "price": 1}


def test_rare_words_weigh_more() -> None:
    weights = weigh_words([{"price", "label"}, {"price", "order"}, {"price"}])
    assert weights["label"] == weights["order"] > weights["price"]
    assert compare_words({"label"}, {"label"}, weights) == 1
    assert compare_words({"label"}, {"order"}, weights) == 0
    assert compare_words(set(), {"order"}, weights) == 0


def test_a_change_is_matched_with_the_file_that_is_about_the_same() -> None:
    about_sessions = make_model(1, "Sessions expire too early\n\nThe cookie is a minute off.", OTHER_GOLD)
    about_widths = make_model(2, f"{STATEMENT}The text is wider than its width.", GOLD.decode())
    about_prices = make_model(3, "A negative discount is not an error\n\nPrices and discounts are summed.", OTHER_GOLD)
    places = match_models([about_sessions, about_widths, about_prices], SOURCES)
    first = {place.model.candidate.name: place.paths[0] for place in places}
    assert first["ada__greet-2"] == "cart/label.py"
    assert first["ada__greet-3"] == "cart/cart.py"
    assert places[-1].model is about_sessions


def test_shared_modules_and_functions_of_the_same_name_weigh_more_than_a_few_words() -> None:
    gold = "@@ -1,2 +1,2 @@ def load(stream):\n-    data = yaml.load(stream)\n+    data = yaml.safe_load(stream)\n"
    sources = {
        "a.py": b"import json\n\n\ndef dump(stream, data, unsafe, colour, width):\n    return json.dump(stream)\n",
        "b.py": b"import yaml\n\n\ndef load(path, mode):\n    return open(path, mode).read()\n",
    }
    (place,) = match_models([make_model(1, "Loading is unsafe", gold)], sources)
    assert place.paths == ("b.py", "a.py")


def test_equally_similar_changes_keep_their_order() -> None:
    models = [make_model(number, "Something else", "") for number in (3, 1, 2)]
    assert [place.model for place in match_models(models, SOURCES)] == models
