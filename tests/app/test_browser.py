"""The app in a real browser: the whole way, on a phone, in the dark, by keyboard, for a screen reader, and attacked."""

from __future__ import annotations

import io
import itertools
import os
import shutil
import time
import zipfile

import openpyxl
import pytest
from playwright.sync_api import expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Every wait is for something to be seen, however long a busy machine takes; this only ends a page that hangs.
LIMIT = 600_000  # milliseconds
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run"]  # fmt: skip
expect.set_options(timeout=LIMIT)

# What a person can act on, and what must have a name for those who cannot see it.
ACTED_ON = {"button", "checkbox", "combobox", "link", "radio", "spinbutton", "textbox", "searchbox", "listbox"}


class Visit:
    """A browser window at the app, with all that it said and asked for."""

    def __init__(self, browser, address, **options):
        self.address, self.said, self.asked, self.dialogs = address, [], [], []
        self.context = browser.new_context(accept_downloads=True, **options)
        self.context.set_default_timeout(LIMIT)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("dialog", self._dialog)
        self.page.goto(address)

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def button(self, name):
        return self.page.get_by_role("button", name=name)

    def heading(self, name, **more):
        expect(self.page.get_by_role("heading", level=1, name=name, **more)).to_be_visible()
        self.page.wait_for_load_state()  # a heading can be seen before styles and scripts have come

    def give(self, content, called="decisions.csv"):
        """Upload a file and wait for its columns."""
        file = {"name": called, "mimeType": "text/csv", "buffer": content}
        self.page.get_by_label("CSV, Excel").set_input_files(file)
        self.button("Continue").first.click()

    def confirm(self, *audits, title=None):
        """Tick the audits and nothing else, confirm the columns and go on to what the rows can show."""
        self.heading("What do the columns mean?")
        for box in self.page.locator("input[name=audit]").all():
            box.set_checked(box.get_attribute("value") in audits)
        if title is not None:
            self.page.get_by_text("More choices", exact=True).click()
            self.page.get_by_label("Title of the report").fill(title)
        self.page.get_by_label("I have checked").check()
        self.button("Continue").click()

    def run(self):
        """Start the audit and wait for its end."""
        self.heading("What can these rows show?")
        self.button("Run the audit").click()
        expect(self.page.get_by_role("link", name="Read the report")).to_be_visible()

    def read(self, title):
        """Open the report and see that it is this one."""
        self.page.get_by_role("link", name="Read the report").click()
        self.opened(title)

    def opened(self, title):
        self.page.wait_for_url("**/report")
        expect(self.page.locator("body")).to_contain_text(title)

    def fits(self):
        """Nothing sticks out of the window: wide tables scroll inside their own frame."""
        self.page.wait_for_load_state("load")  # while it loads, rows that the page will hide are still there
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0, self.page.url

    def tree(self):
        """Return the accessibility tree as roles and names, in the order of reading."""
        session = self.context.new_cdp_session(self.page)
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        session.detach()
        return [
            (node["role"]["value"], node.get("name", {}).get("value", "").strip())
            for node in nodes
            if not node.get("ignored") and "role" in node
        ]


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=QUIET, timeout=LIMIT)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser):
    made = []

    def go(client, **options):
        made.append(Visit(browser, client.address, **options))
        return made[-1]

    yield go
    for one in made:
        one.context.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_whole_way(visit, client, decisions, width):
    """Upload, columns, what the rows can show, run, report, downloads, history, comparison."""
    here = visit(client, viewport={"width": width, "height": 900})
    here.heading("Are people treated differently")
    here.fits()
    for title in (f"First at {width}", f"Second at {width}"):
        here.give(decisions)
        here.heading("What do the columns mean?")
        here.fits()
        assert here.page.get_by_label("This column is (sex)").input_value() == "group"
        assert here.page.get_by_label("This column is (approved)").input_value() == "decision"
        favourable = here.page.get_by_label("Favourable value, if it is the decision or the outcome (approved)")
        assert favourable.evaluate("(select) => select.selectedOptions[0].textContent") == "granted"
        here.confirm("group", title=title)
        here.heading("What can these rows show?")
        expect(here.page.locator("main")).to_contain_text("would probably be found")
        here.fits()
        here.run()
        here.fits()
        if title.startswith("First"):
            here.page.get_by_role("link", name="New audit").click()
    kept = {}
    for name in ("report.html", "findings.json", "findings.xlsx", "plan.toml"):
        with here.page.expect_download() as coming:
            here.page.get_by_role("link", name=name, exact=True).click()
        kept[name] = coming.value.path().read_bytes()
    assert kept["report.html"].startswith(b"<!doctype html>")
    assert b'"schema": "evenhand/1"' in kept["findings.json"]
    assert openpyxl.load_workbook(io.BytesIO(kept["findings.xlsx"])).sheetnames[0] == "About"
    assert b"[data]" in kept["plan.toml"]
    here.read(f"Second at {width}")
    assert here.page.locator("#group").is_visible()
    here.page.go_back()
    here.page.get_by_role("link", name="Past audits").first.click()
    here.heading("Past audits")
    here.fits()
    expect(here.page.locator("main")).to_contain_text(f"First at {width}")
    later = here.page.get_by_label("The later one").locator("option").all_inner_texts()
    assert f"Second at {width}" in later[0]
    here.button("Compare").click()
    expect(here.page.locator("body")).to_contain_text("Comparison of two runs")
    assert here.said == []
    assert here.dialogs == []
    # Nothing was asked of anybody else.
    assert {url.split("/")[2] for url in here.asked if url.startswith("http")} == {f"127.0.0.1:{client.port}"}


def _contrast(page, selector):
    """Return the contrast of an element's text with what is behind it, as WCAG defines it."""
    return page.locator(selector).first.evaluate(
        """(element) => {
            const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
            const bright = (text) => {
                const linear = numbers(text).slice(0, 3).map((v) => {
                    const part = v / 255;
                    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
                });
                return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
            };
            let behind = element;
            while (behind.parentElement && (numbers(getComputedStyle(behind).backgroundColor)[3] ?? 1) === 0)
                behind = behind.parentElement;
            const pair = [getComputedStyle(element).color, getComputedStyle(behind).backgroundColor].map(bright);
            return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
        }"""
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_can_be_read_in_light_and_in_the_dark(visit, client, finished, decisions, scheme):
    here = visit(client, color_scheme=scheme)
    seen = ["body", "h1", ".lead", ".soft", "button.main", "a.brand", "summary", "input[type=text]"]
    weak = {name: _contrast(here.page, name) for name in seen}
    here.give(decisions)
    here.heading("What do the columns mean?")
    more = [".reason", "select", "label", ".values .soft", ".steps li[aria-current]", ".steps li", "button:not(.main)"]
    weak |= {name: _contrast(here.page, name) for name in more}
    here.page.goto(client.address + finished)
    weak |= {name: _contrast(here.page, name) for name in (".headline", ".badge.disparity", ".downloads a")}
    assert {name: ratio for name, ratio in weak.items() if ratio < 4.5} == {}
    dark = here.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in dark[4:-1].split(",")[:3]) < 200) == (scheme == "dark")


def _press_until(page, key, seen, most=150):
    """Press a key until what has the focus is what was looked for."""
    for _ in range(most):
        page.keyboard.press(key)
        if seen(page.evaluate("document.activeElement.textContent + ' ' + (document.activeElement.id || '')").strip()):
            return
    pytest.fail("the keyboard does not reach it")


def test_the_keyboard_alone_is_enough(visit, client, decisions, tmp_path):
    file = tmp_path / "by keyboard.csv"
    file.write_bytes(decisions)
    here = visit(client)
    keys = here.page.keyboard
    keys.press("Tab")
    assert here.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    _press_until(here.page, "Tab", lambda text: text == "path")
    keys.type(str(file))
    keys.press("Enter")
    here.heading("What do the columns mean?")
    for audit in ("projection", "individual", "proxy", "tail", "scan"):
        _press_until(here.page, "Tab", lambda text, audit=audit: text == f"audit-{audit}")
        # The focus can be seen.
        assert here.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
        keys.press("Space")
    _press_until(here.page, "Tab", lambda text: text == "confirmed")
    keys.press("Space")
    _press_until(here.page, "Tab", lambda text: text.startswith("Continue"))
    keys.press("Enter")
    here.heading("What can these rows show?")
    _press_until(here.page, "Tab", lambda text: text == "Run the audit")
    keys.press("Enter")
    expect(here.page.get_by_role("link", name="Read the report")).to_be_visible()
    _press_until(here.page, "Tab", lambda text: text == "Read the report")
    keys.press("Enter")
    here.opened("Audit of by keyboard.csv")


def test_a_screen_reader_finds_names_headings_and_what_changes(visit, client, finished, decisions):
    here = visit(client)

    def check(place):
        tree = here.tree()
        nameless = [role for role, name in tree if role in ACTED_ON and not name]
        assert nameless == [], place
        roles = [role for role, _ in tree]
        assert roles.count("main") == 1, place
        assert ("navigation", "Pages") in tree, place
        levels = here.page.locator("h1, h2, h3, h4").evaluate_all(
            "(all) => all.filter((one) => one.checkVisibility()).map((one) => Number(one.tagName[1]))"
        )
        assert levels[0] == 1, place
        assert levels.count(1) == 1, place
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), (place, levels)
        assert here.page.title().endswith("· Evenhand")
        labels = here.page.locator("input, select, textarea").evaluate_all(
            "(all) => all.filter((one) => one.checkVisibility() && !one.labels.length).map((one) => one.id)"
        )
        assert labels == [], place

    check("start")
    here.page.goto(client.address + "runs")
    check("history")
    here.page.goto(client.address + finished)
    check("finished")
    here.page.goto(client.address)
    here.give(decisions)
    here.heading("What do the columns mean?")
    here.page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    check("columns")
    select = here.page.get_by_label("This column is (repaid)")
    reason = here.page.locator(f"#{select.get_attribute('aria-describedby')}").inner_text()
    assert "what happened" in reason
    # What is wrong is announced and has the focus.
    here.page.get_by_label("This column is (sex)").select_option("none")
    here.page.get_by_label("This column is (age_band)").select_option("none")
    here.confirm("group")
    alert = here.page.get_by_role("alert")
    expect(alert).to_contain_text("No column is marked as a group")
    expect(alert).to_be_focused()
    assert here.page.title().startswith("Problem: ")
    here.page.get_by_label("This column is (sex)").select_option("group")
    here.confirm("group")
    here.heading("What can these rows show?")
    check("check")


def test_a_run_says_how_far_it_is_and_can_be_cancelled(visit, client, slow_decisions):
    here = visit(client)
    here.give(slow_decisions)
    here.confirm("proxy", title="One that is cancelled")
    here.heading("What can these rows show?")
    here.button("Run the audit").click()
    status = here.page.get_by_role("status")
    expect(status).to_contain_text("s: ")
    assert status.get_attribute("aria-live") == "polite"
    here.button("Cancel the audit").click()
    expect(here.page.get_by_role("alert")).to_contain_text("You cancelled this audit.")
    here.page.get_by_role("link", name="Past audits").first.click()
    row = here.page.get_by_role("listitem").filter(has_text="One that is cancelled")
    expect(row).to_contain_text("cancelled")


def test_a_server_that_dies_and_is_started_again(visit, server, tmp_path, decisions, slow_decisions):
    with server(tmp_path / "runs") as first:
        here = visit(first)
        here.give(decisions)
        here.confirm("group", title="The finished one")
        here.run()
        here.page.get_by_role("link", name="New audit").click()
        here.give(slow_decisions)
        here.confirm("proxy", title="The broken one")
        here.heading("What can these rows show?")
        here.button("Run the audit").click()
        expect(here.page.get_by_role("status")).to_contain_text("s: ")
        first.kill()
        expect(here.page.get_by_role("status")).to_contain_text("The app does not answer.")
    with server(tmp_path / "runs") as second:
        again = visit(second)
        again.page.get_by_role("link", name="Past audits").first.click()
        broken = again.page.get_by_role("listitem").filter(has_text="The broken one")
        expect(broken).to_contain_text("interrupted")
        again.page.get_by_role("link", name="The broken one").click()
        expect(again.page.get_by_role("alert")).to_contain_text("The app ended before this audit did")
        again.page.go_back()
        again.page.get_by_role("link", name="The finished one").click()
        again.read("The finished one")
        # The address of the first server opens nothing.
        assert second.ask("GET", f"/{first.token}/", whole=True).status == 403


EVIL = "<img src=x onerror=alert(1)>"


def test_hostile_names_and_cells_do_nothing(visit, client):
    script = "<script>alert(2)</script>"
    cells = ['=HYPERLINK(""http://x"")', script, "'-alert(3)-'", "{{7*7}}", "a\u202eb"]
    lines = [f'"{EVIL}","=cmd|\'/C calc\'!A0",sex']
    values = (script, "javascript:alert(4)")
    lines += [f'"{values[i % 2]}",{i % 3 % 2},"{cells[i % 5]}"' for i in range(300)]
    here = visit(client)
    here.give("\n".join(lines).encode(), f"{EVIL}; x=1; .csv")
    here.heading("What do the columns mean?")
    here.page.locator("details.others summary").click()
    here.page.get_by_label(f"This column is ({EVIL})").select_option("outcome")
    here.page.get_by_label(f"Favourable value, if it is the decision or the outcome ({EVIL})").select_option(script)
    formula = "=cmd|'/C calc'!A0"
    here.page.get_by_label(f"This column is ({formula})").select_option("decision")
    here.page.get_by_label(f"Favourable value, if it is the decision or the outcome ({formula})").select_option("1")
    expect(here.page.locator("main")).to_contain_text(f"{EVIL}; x=1; .csv")
    here.confirm("group", title=f"{EVIL}{script}")
    here.run()
    here.page.get_by_role("link", name="Past audits").first.click()
    expect(here.page.locator("main")).to_contain_text(script)
    here.page.go_back()
    here.read(script)
    assert here.page.locator("img, iframe, object, embed").count() == 0
    expect(here.page.locator("#group")).to_contain_text("{{7*7}}")
    assert here.dialogs == []
    assert here.said == []


def test_a_zip_bomb_gets_a_sentence_and_the_app_goes_on(visit, client, decisions):
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/sharedStrings.xml", bytes(400_000_000))
    here = visit(client)
    begin = time.monotonic()
    here.give(book.getvalue(), "bomb.xlsx")
    alert = here.page.get_by_role("alert")
    expect(alert).to_contain_text("bomb.xlsx would unpack to 1 part and 400 MB")
    assert time.monotonic() - begin < LIMIT / 1000
    here.give(decisions)
    here.heading("What do the columns mean?")


def test_a_file_larger_than_the_limit_is_refused_before_it_is_sent(visit, server, tmp_path):
    with server(tmp_path / "runs", "--limit", "0.001") as small:
        here = visit(small)
        here.give(b"sex,y\n" + b"F,1\n" * 600_000)
        message = here.page.get_by_label("CSV, Excel").evaluate("(input) => input.validationMessage")
        assert "at most 1.02 MB are taken as an upload. Name its path" in message
        here.heading("Are people treated differently")


def test_a_large_file_goes_the_whole_way(visit, client, tmp_path):
    """An upload of 30 MB, which fits into every test run, or of as many as EVENHAND_APP_MEGABYTES says."""
    pieces = round(float(os.environ.get("EVENHAND_APP_MEGABYTES", "30")) / 1.36)
    rows = "".join(f"{'FM'[i % 2]},{i % 3 % 2},{i % 5 % 2},some words to fill the line\n" for i in range(40_000))
    file = tmp_path / "large.csv"
    with file.open("w", encoding="utf-8") as out:
        out.write("sex,repaid,approved,remark\n")
        out.writelines(rows for _ in range(pieces))
    here = visit(client)
    here.page.get_by_label("CSV, Excel").set_input_files(file)
    here.button("Continue").first.click()
    here.heading("What do the columns mean?")
    expect(here.page.locator("main")).to_contain_text("the audit reads all of them")
    here.confirm("group", title="A large one")
    count = f"{40_000 * pieces:,}"
    expect(here.page.locator("main")).to_contain_text(f"{count} of {count} rows can be used.")
    here.run()
