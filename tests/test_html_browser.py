"""The page in a real browser: nothing leaves the file, hostile text stays text, charts can be worked with."""

from __future__ import annotations

import json
import os
import shutil

import pytest
import reports

from logmfu.render import html

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = os.environ.get("CHROMEDRIVER") or shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
LAPTOP, PHONE = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages of all reports as files."""
    folder = tmp_path_factory.mktemp("pages")
    wanted = dict(reports.EVERY) | {"million": reports.million}
    for name, make in wanted.items():
        (folder / f"{name}.html").write_text(html.render(make()), encoding="utf-8")
    index = [(make(), f"{name}.html") for name, make in reports.EVERY.items()]
    (folder / "index.html").write_text(html.render_index(index), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """One headless browser for all tests of this file."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def show(chromium, pages):
    """Opens one page at a size, with or without scripts and in a medium, and gives the browser."""

    def opened(name, size=LAPTOP, *, scripts=True, media="screen", dark=False):
        chromium.get("about:blank")
        for kind in ("browser", "performance"):
            chromium.get_log(kind)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False})  # fmt: skip
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": scheme})
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        chromium.get((pages / f"{name}.html").as_uri())
        return chromium

    yield opened
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def find(browser, selector):
    """The first element of a kind."""
    return browser.find_element("css selector", selector)


def requests(browser):
    """Every address the page asked for."""
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def view(browser):
    """The stretch the charts show."""
    return [float(edge) for edge in find(browser, "#panels").get_attribute("data-view").split()]


@pytest.mark.parametrize("name", [*reports.EVERY, "million", "index"])
def test_no_error_and_no_request(show, pages, name):
    """The console is silent, and nothing is asked for but the file itself and what it carries."""
    browser = show(name)
    assert browser.get_log("browser") == []
    assert {url.split(",")[0] for url in requests(browser)} <= {
        (pages / f"{name}.html").as_uri(), "data:", "data:image/png;base64", "about:blank",
    }  # fmt: skip


def test_hostile_text_is_shown_and_does_nothing(show):
    """No script of the log runs, its text is there to read."""
    browser = show("hostile")
    assert browser.title.startswith("Training run </script>")
    assert "<img src=x onerror=document.title='owned'>" in find(browser, "main").text
    assert "‹ESC›[31mred" in find(browser, "main").text
    assert "(1,048,576 characters)" in find(browser, "main").text


def test_policy_stops_a_script_that_got_in(show):
    """Even a hole in the escaping would run nothing."""
    browser = show("incident")
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'document.title = 1'; document.body.append(s)"
    )
    assert browser.title == "Training run llama-7b-bf16"
    assert "Content Security Policy" in browser.get_log("browser")[0]["message"]


def test_buttons_zoom_and_pan_all_charts(show):
    """Zooming halves the stretch, moving keeps its length, and the whole run comes back."""
    browser = show("million")
    low, high = view(browser)
    find(browser, "[data-do=in]").click()
    near = view(browser)
    assert near[1] - near[0] == pytest.approx((high - low) / 2, rel=1e-6)
    find(browser, "[data-do=right]").click()
    assert view(browser)[0] > near[0]
    assert view(browser)[1] - view(browser)[0] == pytest.approx(near[1] - near[0], rel=1e-6)
    find(browser, "[data-do=reset]").click()
    assert view(browser) == [low, high]


def test_dragging_zooms(show):
    """Dragging over a quarter of a chart shows about that quarter."""
    browser = show("incident")
    low, high = view(browser)
    plot = find(browser, ".u-over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    width = plot.size["width"]
    mouse = webdriver.ActionChains(browser, duration=50)
    mouse.move_to_element_with_offset(plot, -width // 4, 0).click_and_hold().move_by_offset(
        width // 4, 0
    ).release().perform()
    assert view(browser)[1] - view(browser)[0] == pytest.approx((high - low) / 4, rel=0.05)


def test_pointing_reads_a_step(show):
    """Step, time, values, attempt and the line in the log."""
    browser = show("incident")
    plot = find(browser, ".u-over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", plot)
    webdriver.ActionChains(browser, duration=50).move_to_element_with_offset(
        plot, -plot.size["width"] // 2 + 3, 0
    ).perform()
    text = find(browser, "#readout").text
    assert text.startswith("step ")
    assert "MFU 45." in text or "MFU 46." in text or "MFU 44." in text
    assert "attempt 1 · run.log:1" in text


def test_keyboard_reads_and_zooms(show):
    """Arrow keys go from step to step, plus zooms, 0 shows the whole run."""
    browser = show("incident")
    panels, whole = find(browser, "#panels"), view(browser)
    panels.send_keys(webdriver.Keys.ARROW_RIGHT)
    assert find(browser, "#readout").text.startswith("step 1 · 2026-03-04 05:01:0")
    panels.send_keys(webdriver.Keys.ARROW_RIGHT)
    assert find(browser, "#readout").text.startswith("step 2 · ")
    panels.send_keys("+")
    assert view(browser) != whole
    panels.send_keys("0")
    assert view(browser) == whole


def test_by_step_the_axis_runs_over_steps(show):
    """From the first step to the last."""
    browser = show("incident")
    find(browser, "#by-step").click()
    assert view(browser) == [1, 1950]
    assert browser.get_log("browser") == []


def test_tables_sort_by_value_not_by_text(show):
    """40.0 s is less than 30 min; a second click turns the order."""
    browser = show("incident")
    button = find(browser, "#stalls th:nth-child(4) button")

    def lengths():
        return [cell.text for cell in browser.find_elements("css selector", "#stalls td:nth-child(4)")]

    assert button.text == "Length"
    browser.execute_script("arguments[0].click()", button)
    assert (lengths()[0], lengths()[-1]) == ("40.0 s", "30 min")
    browser.execute_script("arguments[0].click()", button)
    assert (lengths()[0], lengths()[-1]) == ("30 min", "40.0 s")
    assert find(browser, "#stalls th:nth-child(4)").get_attribute("aria-sort") == "descending"


def test_a_finding_leads_to_its_line(show):
    """The link of a stall goes to the cited line."""
    browser = show("incident")
    link = find(browser, "#stalls td:last-child a")
    browser.execute_script("arguments[0].click()", link)
    assert "watchdog: ran for 1800000 ms" in find(browser, ":target").text


def test_without_scripts_picture_and_tables_stay(show):
    """The static picture takes the place of the charts."""
    browser = show("incident", scripts=False)
    assert find(browser, ".picture img").is_displayed()
    assert not find(browser, "#charts").is_displayed()
    assert "restart gap" in find(browser, "#ledger table").text


def test_paper_gets_the_picture(show):
    """Charts are for the screen; on paper stands the picture, and no table scrolls."""
    browser = show("incident", media="print")
    assert find(browser, ".picture img").is_displayed()
    assert not find(browser, "#charts").is_displayed()
    assert not find(browser, "nav").is_displayed()


@pytest.mark.parametrize("name", ["incident", "hostile", "many_attempts", "no_steps", "index"])
def test_phone_scrolls_tables_and_not_the_page(show, name):
    """At 390 pixels nothing sticks out sideways."""
    browser = show(name, PHONE)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]


def test_dark_page_is_dark(show):
    """The reader's own setting decides."""
    colour = "return getComputedStyle(document.body).backgroundColor"
    assert show("incident", dark=True).execute_script(colour) == "rgb(20, 24, 29)"
    assert show("incident").execute_script(colour) == "rgb(255, 255, 255)"
