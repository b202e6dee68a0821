"""The page in a real browser: it draws, asks nobody for anything, obeys the keyboard, and stays inert."""

from __future__ import annotations

import shutil
import time

import pytest
from playwright.sync_api import sync_playwright

from evenhand.report import to_html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Every wait is for something to be seen, however long a busy machine takes; this only ends a page that hangs.
LIMIT = 600_000  # milliseconds
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=CHROMIUM, args=QUIET, timeout=LIMIT)
        yield found
        found.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory, full_run, hostile_run):
    folder = tmp_path_factory.mktemp("pages")
    for name, run in (("full", full_run), ("hostile", hostile_run)):
        to_html(run, folder / f"{name}.html")
    return folder


class Visit:
    """A page opened offline, with all it said and asked for."""

    def __init__(self, browser, file, **options):
        self.said, self.asked, self.refused = [], [], []
        self.context = browser.new_context(offline=True, **options)
        self.context.set_default_timeout(LIMIT)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("requestfailed", lambda request: self.refused.append((request.url, request.failure)))
        self.page.goto(file.as_uri())

    def draw_all(self):
        """Go from chart to chart that can be seen, and wait until each is drawn."""
        charts = self.page.locator("figure[data-chart]:visible")
        for chart in charts.all():
            chart.evaluate("(figure) => figure.scrollIntoView()")
            chart.locator(".live svg").wait_for(state="attached")

    def copy_table(self):
        """Press the first table's button, wait until it says that it has copied, and return what was copied."""
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        button = self.page.locator("#group > .tabled button.copy").first
        # The word stands for a moment only: note it when it comes.
        button.evaluate(
            """(button) => {
                const note = () => { window.copied ||= button.textContent === 'Copied'; };
                new MutationObserver(note).observe(button, { childList: true });
            }"""
        )
        button.click()
        self.until(lambda: self.page.evaluate("window.copied"))  # the page's policy forbids to poll inside it
        return self.page.evaluate("navigator.clipboard.readText()")

    def until(self, seen):
        """Let the page go on until something was seen."""
        end = time.monotonic() + LIMIT / 1000
        while not seen():
            assert time.monotonic() < end, "the page hangs"
            self.page.wait_for_timeout(20)


@pytest.fixture
def visit(browser, files):
    opened = []

    def go(name, **options):
        made = Visit(browser, files / f"{name}.html", **options)
        opened.append(made)
        return made

    yield go
    for made in opened:
        made.context.close()


@pytest.mark.parametrize("name", ["full", "hostile"])
@pytest.mark.parametrize("width", [1280, 390])
def test_draws_says_nothing_and_asks_nobody(visit, name, width):
    here = visit(name, viewport={"width": width, "height": 900})
    here.draw_all()
    assert here.said == []
    assert len(here.asked) == 1  # the file itself
    assert here.page.evaluate("document.querySelectorAll('figure.drawn').length") > 0
    # Nothing sticks out: wide tables scroll inside their own frame, or are lists.
    assert here.page.evaluate("document.documentElement.scrollWidth") == width


def test_names_of_groups_are_drawn_whole(visit, full_run):
    here = visit("full", viewport={"width": 390, "height": 900})
    here.draw_all()
    drawn = here.page.locator(".live svg text:visible").all_text_contents()
    assert not [text for text in drawn if "…" in text]
    assert {"kind=b", "skill"} <= set(drawn)


def test_on_a_phone_a_wide_table_is_a_list_and_nothing_hides_beside_it(visit):
    here = visit("full", viewport={"width": 390, "height": 900})
    table = here.page.locator("#group > .tabled table")
    assert table.evaluate("(table) => table.parentElement.scrollWidth <= table.parentElement.clientWidth")
    verdict = table.locator("tbody tr").first.locator("td").last
    assert verdict.evaluate("(cell) => getComputedStyle(cell, '::before').content").startswith('"Verdict')
    box = verdict.bounding_box()
    assert box["x"] + box["width"] <= 390
    wide = visit("full", viewport={"width": 1280, "height": 900})
    cell = wide.page.locator("#group > .tabled table tbody td").last
    assert cell.evaluate("(cell) => getComputedStyle(cell, '::before').content") in ("none", "normal")


def test_charts_stay_inside_their_frame(visit):
    here = visit("full", viewport={"width": 390, "height": 900})
    here.draw_all()
    wide = here.page.evaluate(
        """() => [...document.querySelectorAll('.figures .live svg')].filter((svg) => {
            const frame = svg.closest('figure').getBoundingClientRect();
            return svg.getBoundingClientRect().right > frame.right + 1;
        }).length"""
    )
    assert wide == 0


def test_hostile_names_do_nothing(visit):
    here = visit("hostile", viewport={"width": 1280, "height": 900})
    here.draw_all()
    here.page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    here.draw_all()
    assert here.page.evaluate("window.pwned") is None
    assert here.page.evaluate("document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert here.said == []


def test_policy_refuses_scripts_and_requests(visit):
    """The policy works: what a name could inject would not run, and nothing can leave the page."""
    here = visit("full")
    here.page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.pwned = 1';
            document.body.append(script);
            const picture = document.createElement('img');
            picture.src = 'https://example.org/x.png';
            document.body.append(picture);
        }"""
    )
    assert here.page.evaluate("window.pwned") is None
    here.until(lambda: len(here.said) >= 2 and here.refused)
    assert sum("Content Security Policy" in text for text in here.said) == 2
    assert here.refused == [("https://example.org/x.png", "csp")]


def test_a_findings_link_opens_its_evidence(visit):
    here = visit("full")
    assert not here.page.locator("#finding-1").is_visible()
    here.page.locator('a[href="#finding-1"]').first.click()
    here.page.locator("#finding-1 table").first.wait_for(state="visible")


def test_keyboard_reaches_everything(visit):
    here = visit("full")
    here.page.keyboard.press("Tab")
    assert here.page.evaluate("document.activeElement.textContent") == "Skip to the findings"
    reached = set()
    for _ in range(60):
        here.page.keyboard.press("Tab")
        reached.add(here.page.evaluate("document.activeElement.tagName + '.' + document.activeElement.className"))
    assert {"A.", "SUMMARY.", "BUTTON.copy", "DIV.scroll"} <= reached


@pytest.mark.parametrize(
    ("name", "copied"),
    [("=1+1", "'=1+1"), ("@SUM(A1)", "'@SUM(A1)"), ("-cmd|' /C calc'!A0", "'-cmd"), ("-0.25", "-0.25"), ("+3", "+3")],
)
def test_copied_cells_are_no_formulas(visit, name, copied):
    here = visit("full")
    here.page.evaluate(
        """(name) => {
            const cell = document.querySelector('#group > .tabled tbody td');
            delete cell.dataset.value;
            cell.innerText = name;
        }""",
        name,
    )
    assert any(cell.startswith(copied) for line in here.copy_table().splitlines() for cell in line.split("\t"))


def test_copy_gives_all_digits(visit, full_run):
    here = visit("full")
    text = here.copy_table()
    first = full_run.findings[0]
    for value in (first.estimate, first.interval.low, first.interval.high, first.pvalue, first.pvalue_adjusted):
        assert str(value) in text


def test_readable_without_scripts(visit, full_run):
    here = visit("full", java_script_enabled=False)
    body = here.page.locator("body").inner_text()
    assert full_run.findings[0].measure in body
    assert here.page.locator(".still svg").first.is_visible()
    assert not here.page.locator("button.copy").first.is_visible()


def _contrast(page):
    """Return the smallest contrast of text with what is behind it, over all elements with own text."""
    return page.evaluate(
        """() => {
            const light = (colour) => {
                const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((v) => {
                    const c = v / 255;
                    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
                });
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const behind = (element) => {
                for (let place = element; place; place = place.parentElement) {
                    const colour = getComputedStyle(place).backgroundColor;
                    if (colour !== 'rgba(0, 0, 0, 0)' && colour !== 'transparent') return colour;
                }
                return 'rgb(255, 255, 255)';
            };
            let worst = [99, ''];
            for (const element of document.querySelectorAll('body *')) {
                const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
                if (!own || !element.checkVisibility() || element.closest('svg, script, style')) continue;
                const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
                const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
                if (ratio < worst[0]) worst = [ratio, element.outerHTML.slice(0, 90)];
            }
            return worst;
        }"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(visit, scheme):
    here = visit("full", color_scheme=scheme)
    here.page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    ratio, where = _contrast(here.page)
    assert ratio >= 4.5, where


def test_dark_page_has_dark_charts(visit):
    """Charts take the page's colours: their text is as light as the page's in the dark."""
    seen = {}
    for scheme in ("light", "dark"):
        here = visit("full", color_scheme=scheme)
        here.draw_all()
        seen[scheme] = here.page.evaluate("getComputedStyle(document.querySelector('.live svg text')).fill")
    assert seen["light"] != seen["dark"]


def test_prints_with_still_charts_on_white(visit, tmp_path):
    here = visit("full", color_scheme="dark")
    here.draw_all()
    here.page.emulate_media(media="print")
    assert here.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert here.page.locator(".figures .still svg").first.is_visible()
    assert not here.page.locator(".figures .live").first.is_visible()
    assert not here.page.locator("nav").is_visible()
    here.page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_figures_have_words_for_those_who_cannot_see_them(visit):
    here = visit("full")
    unnamed = here.page.evaluate(
        "[...document.querySelectorAll('figure [role=img]')].filter((f) => !f.getAttribute('aria-label')).length"
    )
    assert unnamed == 0
    levels = here.page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
