"""Measure the pages of `mergemill serve` on a large database: `python -m benchmarks.web_pages --db URL [--store DIR]`.

A server is started for each page, so that the first request pays for all that is loaded on demand; the page is
then requested again. Printed per page, in milliseconds:

- first: the first request of a fresh server, from sending it to the last byte;
- again: the median of `--repetitions` further ones;
- paint: first contentful paint in headless Chromium, median of as many fresh contexts (goal: less than 200), and
  in brackets that of a page of one word that the browser is given without a server, the least it needs on this machine.
  The page is opened in a window that exists since `--settle` seconds: Chromium loads its own toolbars for a while;
- times the floor: `again` divided by the median for a file of a few bytes from the same server, in turn with the page.
  This is what the transport costs, and so the least that any page can cost.

With `--check` the exit code is 1 when a first request or a paint takes 200 ms or longer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.table import Table

from taskdb.queries import readonly
from taskdb.queries import tasks as queries
from taskdb.queries.task_filters import parse_filters
from taskdb.store import Store

MOST_MILLISECONDS = 200.0
FLOOR = "/static/icon.svg"
CHROMIUM_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
START_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class PageTimes:
    """Milliseconds of one page. `paint` is None without a browser."""

    title: str
    first: float
    again: float
    floor: float
    paint: float | None
    bare_paint: float | None

    @property
    def is_slow(self) -> bool:
        """True if a person would wait for the page."""
        return max(self.first, self.paint or 0.0) >= MOST_MILLISECONDS


def list_pages(url: str) -> dict[str, str]:
    """Return the title of each measured page -> its address, with names and values that the database has.

    Raises:
        InputError: the URL names no database.
    """
    with Store.open(url, create=False) as store:
        columns = ("name", "repo", "license", "change_name")
        rows = queries.list_tasks(store, parse_filters({}), 2000, columns=columns)
        rejected = list(readonly.run_query(store, "SELECT name FROM changes WHERE status = 'rejected' LIMIT 1"))
    newest, later = rows[0], rows[-1]
    words = " ".join(re.findall(r"[a-z]{5,}", str(newest["repo"]).lower())[:1]) or "error"
    return {
        "overview": "/",
        "tasks": "/tasks",
        "tasks of a kind": "/tasks?kind=injected",
        "tasks of a repository": f"/tasks?repo={later['repo']}",
        "tasks of a kind, language and licence": f"/tasks?kind=bugfix&language=python&license={later['license']}",
        "tasks, 2,000th onwards": f"/tasks?after={later['name']}",
        "tasks in a range of patch sizes": "/tasks?changed_lines=50:60",
        "tasks in an empty range": "/tasks?test_seconds=100000:200000",
        "search": f"/tasks?q={words}",
        "one task": f"/tasks/{later['name']}",
        "funnel": "/funnel",
        "funnel of a repository": f"/funnel?repo={later['repo']}",
        "changes": "/changes",
        "rejected changes": "/changes?status=rejected",
        "one task's change": f"/changes/{later['change_name']}",
        **({"a rejected change": f"/changes/{rejected[0]['name']}"} if rejected else {}),
        "runs": "/runs",
        "API: tasks": "/api/v1/tasks?limit=50",
        "API: why": f"/api/v1/why/{later['change_name']}",
    }


@contextmanager
def run_server(url: str, store: Path | None) -> Iterator[str]:
    """Run `mergemill serve` on a free port; yield its address without a slash at the end.

    Raises:
        RuntimeError: it ended before it listened.
    """
    command = [str(Path(sys.executable).with_name("mergemill")), "serve", "--db", url, "--port", "0"]
    command += ["--store", str(store)] if store else []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        if process.stderr is None:
            raise RuntimeError("the server has no standard error")
        try:
            for line in process.stderr:
                if match := re.search(r"http://[^\s/]+", line):
                    yield match[0]
                    return
            raise RuntimeError("the server ended before it listened")
        finally:
            process.kill()


def measure_page(title: str, path: str, options: argparse.Namespace, browser: Browser | None) -> PageTimes:
    """Measure one page on a server of its own; paints only with a browser."""
    repetitions = options.repetitions
    with (
        run_server(options.db, options.store) as address,
        httpx.Client(base_url=address, timeout=START_SECONDS) as client,
    ):
        client.get(FLOOR).raise_for_status()  # the connection stands; nothing of the page is loaded
        first = time_request(client, path)
        again, floor = [], []
        for _ in range(repetitions):
            again.append(time_request(client, path))
            floor.append(time_request(client, FLOOR))
        paints: tuple[float | None, float | None] = (None, None)
        if browser:
            paints = measure_paints(browser, address + path, repetitions, options.settle)
    return PageTimes(
        title=title,
        first=first,
        again=statistics.median(again),
        floor=statistics.median(floor),
        paint=paints[0],
        bare_paint=paints[1],
    )


def time_request(client: httpx.Client, path: str) -> float:
    """Return the milliseconds of a request that must be answered with 200."""
    started = time.perf_counter()
    client.get(path).raise_for_status()
    return 1000 * (time.perf_counter() - started)


def measure_paints(browser: Browser, address: str, repetitions: int, settle: float) -> tuple[float, float]:
    """Return the median milliseconds until first contentful paint of a page, and of a bare one, taken in turn.

    `settle`: seconds that each window is left alone before.
    """
    paints: tuple[list[float], list[float]] = ([], [])
    for _ in range(repetitions):
        for paint, is_bare in zip(paints, (False, True), strict=True):
            context = browser.new_context()
            try:
                page = context.new_page()
                time.sleep(settle)
                if is_bare:
                    page.route("**/*", lambda route: route.fulfill(content_type="text/html", body="<p>mergemill"))
                page.goto(address, wait_until="load")
                paint.append(float(page.evaluate(_READ_PAINT)))
            finally:
                context.close()
    return statistics.median(paints[0]), statistics.median(paints[1])


_READ_PAINT = """() => new Promise((done, fail) => {
  const read = list => list.find(entry => entry.name === 'first-contentful-paint');
  const now = read(performance.getEntriesByType('paint'));
  if (now) { done(now.startTime); return; }
  new PerformanceObserver(list => { const one = read(list.getEntries()); if (one) done(one.startTime); })
    .observe({type: 'paint', buffered: true});
  setTimeout(() => fail(new Error('nothing was painted')), 5000);
})"""


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """Open headless Chromium.

    Raises:
        RuntimeError: there is none.
    """
    executable = shutil.which("chromium", path=f"{os.environ['PATH']}:/usr/bin")
    if executable is None:
        raise RuntimeError("there is no Chromium: apt-get install -y chromium, or leave out --browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(CHROMIUM_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


def measure_pages(
    pages: Mapping[str, str], options: argparse.Namespace, report: Callable[[PageTimes], None]
) -> list[PageTimes]:
    """Measure all pages one after the other; each is reported at once."""
    page_times = []
    with ExitStack() as stack:
        browser = stack.enter_context(open_chromium()) if options.browser else None
        for title, path in pages.items():
            seen = None if path.startswith("/api") else browser
            page_times.append(measure_page(title, path, options, seen))
            report(page_times[-1])
    return page_times


def render_times(times: list[PageTimes]) -> Table:
    """Return a table of all pages."""
    table = Table("page", "first", "again", "times the floor", "paint", title="milliseconds")
    for page in times:
        paint = "-" if page.paint is None else f"{page.paint:.0f} ({page.bare_paint:.0f})"
        table.add_row(page.title, f"{page.first:.0f}", f"{page.again:.1f}", f"{page.again / page.floor:.1f}", paint)
    return table


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--db", required=True, help="a database, such as one of benchmarks.taskdb --keep")
    parser.add_argument("--store", type=Path, help="its artifacts")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--settle", type=float, default=1.5, help="seconds that a window exists before")
    parser.add_argument("--browser", action="store_true", help="measure first paint in Chromium too")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a page is slow")
    options = parser.parse_args()
    console, progress = Console(width=120), Console(stderr=True)
    pages = list_pages(options.db)
    times = measure_pages(pages, options, lambda page: progress.print(f"{page.title}: {page.first:.0f} ms"))
    console.print(render_times(times))
    slow = [page.title for page in times if page.is_slow]
    console.print(
        f"{len(slow)} of {len(times)} pages take {MOST_MILLISECONDS:.0f} ms or longer: {', '.join(slow)}".rstrip(": ")
    )
    return 1 if slow and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
