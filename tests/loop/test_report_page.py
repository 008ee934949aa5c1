"""The page of a run, in a real browser, with texts that would like to be markup."""

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))
sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from chromium import needs_chromium, opened, ready
from program import call
from small_shop import make_shop, write

from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

EVIL = (
    "</script><script>window.pwned=1</script><img src=x onerror='window.pwned=2'>"
    "<!--<svg onload=window.pwned=3> javascript:window.pwned=4 {{ 7*7 }} &lt;b&gt;"
)
CHINESE = "这件多少钱？主播帮我看看👀"
SCRIPT = {
    "schema": 1,
    "rules": [
        {
            "when": "stock",
            "replies": [
                {"text": None, "calls": [{"name": "load_skill", "arguments": {"skill": EVIL}}]},
                {"text": f"12 left. {EVIL}"},
            ],
        },
        {"when": "更好", "replies": [{"text": "Hello and welcome!"}]},
        {"when": ".", "replies": [{"text": f"欢迎来到直播间！ {EVIL}"}]},
    ],
}


def hostile_items(n=30):
    for i in range(n):
        kind = ("stock", "hello")[i % 2]
        yield {
            "id": f"{kind}-{i:03}" + (EVIL if i == 1 else ""),
            "split": "dev",
            "category": f"<b>{kind}</b>",
            "tags": [EVIL] if i == 0 else [kind],
            "request": {
                "comments": [
                    {
                        "viewer": "v",
                        "text": f"{'stock of mug ' if i % 2 == 0 else ''}{CHINESE} {EVIL}",
                    }
                ],
                "room": {"id": "r-1", "current_link": 1, "products": ["p-1"]},
            },
            "expect": {"answers": ["greet"]},
        }


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Two runs of one hostile evalset; the second answers better."""
    root = tmp_path_factory.mktemp("pages") / "shop"
    make_shop(root)
    lines = [json.dumps(i) for i in hostile_items()]
    write(root / "evalsets/shop/items.jsonl", "\n".join(lines) + "\n")
    write(root / "evalsets/shop/evalset.yaml", f"name: shop\nsplits: {{dev: {len(lines)}}}\n")
    write(root / "s.yaml", json.dumps(SCRIPT))
    assert call(root, "eval", "shop", "-q").code == 0
    better = {**SCRIPT, "rules": [{**SCRIPT["rules"][1], "when": "."}]}
    write(root / "s.yaml", json.dumps(better))
    assert call(root, "eval", "shop", "-q").code == 0
    return root


@pytest.fixture(scope="module")
def page_file(shop):
    runs = RunStore(Project.find(shop).runs).list()
    new, old = runs[0].id, runs[1].id
    done = call(shop, "report", old, new, "-o", "page.html", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["incumbent"] == new
    return shop / "page.html"


@pytest.fixture(scope="module")
def better_file(shop):
    runs = RunStore(Project.find(shop).runs).list()
    assert call(shop, "report", runs[0].id, runs[1].id, "-o", "better.html").code == 0
    return shop / "better.html"


def test_the_file_is_one_document_without_addresses_and_with_a_strict_policy(page_file):
    text = page_file.read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy
    assert "*" not in policy
    assert not re.search(r"\b(?:src|href)=[\"']?(?:https?:|//)", text)
    assert not re.search(r"\son\w+=|\sstyle=", text.split('id="data">')[0])
    assert "pwned=1</script>" not in text
    assert text.count("<script>") == 1


@needs_chromium
def test_hostile_text_is_text_and_runs_nothing(page_file):
    with opened() as (page, seen):
        ready(page, page_file.as_uri())
        assert page.locator("#table tbody tr").count() == 30
        for number in range(4):
            page.locator("button.open").nth(number).click()
            page.wait_for_selector("#detail-body h3")
            page.keyboard.press("Escape")
        assert EVIL in page.locator("#table").inner_text().replace("\xa0", " ")
        assert page.evaluate("window.pwned") is None
        assert page.locator("img").count() == 0
        assert page.evaluate("document.scripts.length") == 1 + page.locator("script[id]").count()
        assert page.locator("[onload], [onerror], [onclick]").count() == 0
    assert seen.errors == []
    assert seen.messages == []
    assert all(url.startswith("file:") for url in seen.requests)
    assert len(seen.requests) == 1


@needs_chromium
def test_the_policy_stops_markup_that_got_in_all_the_same(page_file, tmp_path):
    """The second wall: what the first one keeps out is put into the file by hand."""
    spoilt = tmp_path / "spoilt.html"
    inside = (
        "<script>window.pwned=1</script><img src='http://127.0.0.1:9/x' onerror='window.pwned=2'>"
        "<p id=red style='color:rgb(255,0,0)'>x</p><iframe src='http://127.0.0.1:9/'></iframe>"
        "<form action='http://127.0.0.1:9/'><button id=send>x</button></form><main>"
    )
    spoilt.write_text(page_file.read_text("utf-8").replace("<main>", inside, 1), "utf-8")
    with opened() as (page, seen):
        ready(page, spoilt.as_uri())
        page.evaluate("document.getElementById('send').click()")
        assert page.evaluate("window.pwned") is None
        colour = page.evaluate("getComputedStyle(document.getElementById('red')).color")
        assert colour != "rgb(255, 0, 0)"
        with pytest.raises(Exception, match="TrustedHTML"):
            page.evaluate("document.body.innerHTML = '<b>x</b>'")
    assert seen.messages  # the browser says what it refused
    refused = [m for m in seen.messages if "Content Security Policy" in m]
    assert len(refused) >= 4
    assert not [u for u in seen.requests if "127.0.0.1:9/?" in u]  # the form was not sent


@needs_chromium
def test_it_searches_filters_sorts_and_opens_a_trajectory(better_file):
    with opened() as (page, seen):
        ready(page, better_file.as_uri())
        rows = page.locator("#table tbody tr")
        said = page.locator("#shown")
        assert said.inner_text().startswith("1–30 of 30 found")
        page.keyboard.press("/")
        page.keyboard.type("stock-00")
        assert rows.count() == 5
        page.locator("#search").fill("这件多少钱")
        assert rows.count() == 30
        page.locator("#f-category").select_option("<b>stock</b>")
        assert rows.count() == 15
        page.locator("#search").fill("nothing has this")
        assert said.inner_text() == "0 of 0 found, 30 in all"
        page.locator("#reset").click()
        page.wait_for_function("document.querySelectorAll('#table tbody tr').length === 30")
        page.locator("#f-change").select_option("fixed")
        assert rows.count() > 0
        head = page.locator("#table thead th").nth(2)
        head.locator("button").click()
        assert page.locator("#table thead th").nth(2).get_attribute("aria-sort") == "ascending"
        page.locator("button.open").first.click()
        page.wait_for_selector("#detail-body h3")
        body = page.locator("#detail-body").inner_text()
        assert "What the incumbent did" in body
        assert "Hello and welcome!" in body
        assert CHINESE in body
        assert "#item=" in page.url
        first = page.locator("#detail-title").inner_text()
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"document.getElementById('detail-title').textContent !== {first!r}")
        page.keyboard.press("Escape")
        assert not page.locator("#detail").is_visible()
    assert seen.errors == []


@needs_chromium
def test_tool_calls_hooks_and_the_verdict_with_its_reasons_are_in_the_trajectory(page_file):
    with opened() as (page, _):
        ready(page, page_file.as_uri() + "#item=stock-000")
        page.wait_for_selector("#detail-body h3")
        body = page.locator("#detail-body").inner_text()
        assert "load_skill" in body
        assert "grounded@" in body
        assert "missing_act" in body
        assert "error: " in body  # the skill does not exist
        assert page.locator("#detail .is-system").count() == 1


@needs_chromium
def test_language_theme_and_keyboard(page_file):
    with opened(locale="zh-CN", color_scheme="dark") as (page, seen):
        ready(page, page_file.as_uri())
        assert page.locator("#h-result").inner_text() == "结果"
        assert page.evaluate("document.documentElement.lang") == "zh-CN"
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator("#theme").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
        page.locator("#language").click()
        assert page.locator("#h-result").inner_text() == "Result"
        page.locator("#search").focus()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.id") == "f-state"
        names = page.evaluate(
            "[...document.querySelectorAll('button,input,select,svg[role=img]')]"
            ".filter(n => !(n.labels?.length || n.textContent.trim() || n.ariaLabel)).length"
        )
        assert names == 0
        assert page.locator("[role=status][aria-live=polite]").count() == 1
    assert seen.errors == []


@needs_chromium
def test_it_prints_headline_and_tables_without_controls(page_file, tmp_path):
    with opened() as (page, _):
        ready(page, page_file.as_uri())
        page.emulate_media(media="print")
        assert page.locator("#metrics").is_visible()
        assert page.locator("#changes").is_visible()
        assert page.locator("#table").is_visible()
        assert not page.locator("#filters").is_visible()
        assert not page.locator(".tools").is_visible()
        data = page.pdf(path=str(tmp_path / "page.pdf"))
    assert data.startswith(b"%PDF")
    assert len(data) > 20_000


@needs_chromium
def test_without_scripts_the_numbers_are_there(page_file):
    with opened(java_script_enabled=False) as (page, _):
        page.goto(page_file.as_uri())
        assert page.locator("#metrics").is_visible()
        assert "needs scripts" in page.locator("#items").inner_text()


@needs_chromium
def test_a_browser_that_cannot_inflate_says_so(page_file):
    with opened() as (page, seen):
        page.add_init_script("delete window.DecompressionStream")
        ready(page, page_file.as_uri())
        page.locator("button.open").first.click()
        page.wait_for_selector("#detail-body .remark")
        assert "cannot be opened" in page.locator("#detail-body").inner_text()
    assert seen.errors == []
