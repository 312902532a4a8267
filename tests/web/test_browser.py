"""The pages in headless Chromium: clicks, keyboard, themes, phones, accessibility, and hostile texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from mergemill.web.inline_assets import STYLE, THEME_SCRIPT
from mergemill.web.visible_text import make_visible, remove_ansi_sequences
from tests.web.browser import open_browser, watch_page
from tests.web.hostile import STRINGS, HostileTask, seed_hostile_database
from tests.web.screenshots import list_shots, take_screenshots
from tests.web.seed import SeededDatabase
from tests.web.server import run_server

pytestmark = pytest.mark.browser
PHONE = {"width": 320, "height": 640}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def address(seeded: SeededDatabase) -> Iterator[str]:
    with run_server(seeded) as (_, url, _):
        yield url


def read_width(path: Path) -> int:
    """Return the width of a PNG image, which stands in its header."""
    return int.from_bytes(path.read_bytes()[16:20])


def list_pages(seeded: SeededDatabase) -> list[str]:
    shots = [shot.path for shot in list_shots(seeded).values()]
    return [
        *dict.fromkeys(shots),
        "/tasks",
        "/funnel",
        "/changes",
        f"/changes/{seeded.change}",
        f"/artifacts/{seeded.artifact}",
    ]


def test_a_reader_clicks_from_the_funnel_to_a_log_and_from_the_list_to_a_task(
    browser: Browser, address: str, seeded: SeededDatabase
) -> None:
    with watch_page(browser, address) as watched:
        page = watched.open("/")
        page.get_by_role("link", name="Details").click()
        page.get_by_role("link", name="tests-not-collected").click()
        page.get_by_role("link", name="ada__greet-1003").click()
        page.get_by_role("link", name="rejection by build").click()
        assert "2 failed, 14 passed" in page.inner_text("pre")
        page.get_by_role("navigation", name="Main").get_by_role("link", name="Tasks").click()
        page.get_by_role("link", name="python").click()
        page.get_by_role("link", name="pallets/flask", exact=False).first.click()
        page.get_by_role("link", name=seeded.task).click()
        assert page.inner_text("h1") == seeded.task
        assert page.inner_text("mark") == "must not raise"


def test_the_keyboard_selects_opens_and_searches(browser: Browser, address: str) -> None:
    with watch_page(browser, address) as watched:
        page = watched.open("/tasks?kind=feature")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        names = page.locator("[data-row] a").all_inner_texts()
        for key in ("j", "j", "j", "k"):
            page.keyboard.press(key)
        assert page.inner_text(".selected a") == names[1]
        page.keyboard.press("Enter")
        page.wait_for_url("**/tasks/*")
        assert page.inner_text("h1") == names[1]
        page.keyboard.press("/")
        page.keyboard.type("pallets jk")
        page.keyboard.press("Enter")
        page.wait_for_url("**/tasks?q=*")
        assert "No task matches" in page.inner_text("main")


def test_the_theme_follows_the_system_and_the_reader(browser: Browser, address: str) -> None:
    def read_background(page: Page) -> Any:
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    with watch_page(browser, address, color_scheme="dark") as watched:
        page = watched.open("/")
        assert read_background(page) == "rgb(13, 17, 23)"
        page.get_by_role("button", name="Switch between light and dark").click()
        assert read_background(page) == "rgb(245, 246, 249)"
        page = watched.open("/funnel")  # the choice stays
        assert read_background(page) == "rgb(245, 246, 249)"
        page.keyboard.press("t")
        assert read_background(page) == "rgb(13, 17, 23)"


def test_no_page_is_wider_than_a_phone(browser: Browser, address: str, seeded: SeededDatabase) -> None:
    with watch_page(browser, address, viewport=PHONE) as watched:
        for path in list_pages(seeded):
            page = watched.open(path)
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path


def test_tables_of_a_bench_scroll_by_themselves_on_a_phone_without_scripts(
    browser: Browser, address: str, seeded: SeededDatabase
) -> None:
    with watch_page(browser, address, viewport=PHONE, java_script_enabled=False) as watched:
        page = watched.open("/bench")
        page.get_by_role("link", name=seeded.bench, exact=True).click()
        assert page.inner_text("h1") == seeded.bench
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        wide = page.evaluate(SCROLLED)
        assert (wide[0], len(wide), wide[-1]) == ("Runs", 4, "Subjects")
        assert all(page.get_by_role("region", name=name, exact=True).get_by_role("table").count() for name in wide)
        page.get_by_role("link", name="compare others with").last.click()
        assert page.get_by_role("table", name="Differences from").get_by_role("columnheader").count() == 12
        page.get_by_role("link", name="Attempt 1: ").first.click()
        assert page.inner_text("h1").startswith("Rollout ")


def test_every_control_has_a_name_and_every_table_a_header(
    browser: Browser, address: str, seeded: SeededDatabase
) -> None:
    with watch_page(browser, address) as watched:
        for path in list_pages(seeded):
            page = watched.open(path)
            assert page.evaluate(NAMELESS) == [], path
            assert page.locator("h1").count() == 1, path
            assert page.locator("table:not(:has(th[scope]))").count() == 0, path
            assert page.locator("table:not(:has(caption)):not(.prose table)").count() == 0, path
            assert page.evaluate("document.documentElement.lang") == "en"


SCROLLED = """() => [...document.querySelectorAll('.scroll')].filter((area) => area.scrollWidth > area.clientWidth
).map((area) => area.getAttribute('aria-label'))"""
NAMELESS = """() => [...document.querySelectorAll('a, button, input:not([type=hidden])')].filter((control) =>
    !(control.textContent.trim() || control.getAttribute('aria-label') || control.labels?.length)
).map((control) => control.outerHTML)"""


def test_the_page_of_runs_is_kept_up_to_date(browser: Browser, address: str, seeded: SeededDatabase) -> None:
    (path,) = (seeded.settings.storage.store_dir / "runs").glob("*.json")
    before = path.read_text()
    try:
        with watch_page(browser, address) as watched:
            page = watched.open("/runs")
            assert page.inner_text("[data-field=done]") == "128"
            path.write_text(before.replace('"done": 128', '"done": 131').replace('"passed": 96', '"passed": 99'))
            page.locator("[data-field=done]", has_text="131").wait_for(timeout=10_000)
            assert page.inner_text("[data-count='build passed']") == "99"
    finally:
        path.write_text(before)


def test_screenshots_are_taken(browser: Browser, address: str, seeded: SeededDatabase, tmp_path: Path) -> None:
    taken = take_screenshots(browser, seeded, address, tmp_path)
    assert len(taken) == 10
    assert all(10_000 < path.stat().st_size < 150_000 for path in taken)
    assert [path.stem for path in taken if read_width(path) == PHONE["width"]] == [
        "serve-benches-phone",
        "serve-bench-phone",
    ]


# ------------------------------------------------------------------------------------------------ hostile texts

FOREIGN_MARKUP = """own => [...document.querySelectorAll('*')].filter((element) => {
    const name = element.localName;
    const address = element.getAttribute('href') ?? element.getAttribute('src') ?? '';
    return ['iframe', 'object', 'embed', 'img', 'base', 'video', 'audio', 'math', 'template', 'image', 'use']
            .includes(name)
        || (name === 'style' && element.textContent !== own.style)
        || (name === 'script' && !address.startsWith('/static/') && element.textContent !== own.script)
        || (name === 'link' && !address.startsWith('/static/'))
        || (name === 'meta' && element.hasAttribute('http-equiv'))
        || (name === 'form' && element.getAttribute('action') !== '/tasks')
        || (name === 'a' && !['http:', 'https:', 'mailto:'].includes(element.protocol))
        || [...element.attributes].some((attribute) => attribute.name.startsWith('on') || attribute.name === 'style');
}).map((element) => element.outerHTML.slice(0, 200))"""
INTACT = "document.body.lastElementChild.localName === 'footer' && document.querySelectorAll('main').length === 1"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[SeededDatabase, list[HostileTask]]:
    return seed_hostile_database(tmp_path_factory.mktemp("hostile"))


def normalise(text: str) -> str:
    return re.sub(r"\s+", "", text)


def check_page(page: Page, texts: list[str]) -> None:
    assert page.evaluate(FOREIGN_MARKUP, {"style": STYLE, "script": THEME_SCRIPT}) == [], page.url
    assert page.evaluate(INTACT), page.url
    shown = normalise(page.evaluate("document.body.textContent"))
    missing = [text for text in texts if normalise(make_visible(text)) not in shown]
    assert not missing, f"{page.url}: {missing[:5]}"


@pytest.mark.timeout(300)
def test_hostile_texts_are_shown_as_text(browser: Browser, hostile: tuple[SeededDatabase, list[HostileTask]]) -> None:
    seeded, tasks = hostile
    assert len(STRINGS) >= 200
    with run_server(seeded) as (_, address, _), watch_page(browser, address) as watched:
        for task in tasks:
            for path in (f"/tasks/{task.task}", f"/changes/{task.change}"):
                check_page(watched.open(path), task.strings)
            check_page(watched.open(f"/artifacts/{task.log}"), [remove_ansi_sequences(text) for text in task.strings])
        for path in ("/", "/funnel", "/rollouts/hostile"):
            check_page(watched.open(path), [])
        check_page(watched.open("/runs"), list(STRINGS))
        for path in ("/tasks", "/changes"):
            page = watched.open(path)
            shown = ""
            while True:
                check_page(page, [])
                shown += normalise(page.evaluate("document.body.textContent"))
                following = page.locator("a[rel=next]")
                if not following.count():
                    break
                page = watched.open(following.get_attribute("href") or "")
            missing = [text for text in STRINGS if normalise(make_visible(text.replace("\0", "?"))) not in shown]
            assert not missing, f"{path}: {missing}"
