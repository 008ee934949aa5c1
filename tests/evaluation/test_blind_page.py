"""The annotation page over real sockets: who may ask, what is kept, what hostile text can do."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser

import aiohttp
import pytest
from aiohttp import web
from blind_runs import make_project, make_run

from harness_cli.evaluation.blind.annotations import opened, read_annotations
from harness_cli.evaluation.blind.make import Wanted, make, read_sheet, write
from harness_cli.evaluation.blind.page import application, serve

HOSTILE = "</p><script>alert(1)</script><img src=http://evil.example/x onerror=alert(2)>\"'&"


@pytest.fixture
def folder(tmp_path):
    project = make_project(tmp_path, {"chat": 4})
    a = make_run(project, "a", lambda i: f"{HOSTILE} {i}")
    b = make_run(project, "b", lambda i: f"plain {i}")
    sheet, _, sealed = make(project, a, b, Wanted(review=0))
    write(tmp_path / "blind" / "t", sheet, tmp_path / "key.json", sealed)
    return tmp_path / "blind" / "t"


def with_page(folder, work):
    """`work(session, url)` against the page served alone, as `annotate --page` does."""

    async def run():
        ended, urls = asyncio.Event(), asyncio.Queue()
        server = asyncio.ensure_future(serve(folder, "ann", 0, urls.put_nowait, ended))
        url = await urls.get()
        try:
            async with aiohttp.ClientSession() as session:
                return await work(session, url)
        finally:
            ended.set()
            await server

    return asyncio.run(run())


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs


def test_pair_by_pair_until_everything_is_decided(folder):
    sheet = read_sheet(folder)

    async def work(session, url):
        for n, pair in enumerate(sheet.pairs):
            page = await (await session.get(url)).text()
            assert f"pair {pair.id}" in page
            assert f"{4 - n} open" in page
            said = {"pair": pair.id, "choice": "B", "reason": f"r{n}", "tag": "tool-use"}
            answer = await session.post(url, data=said)
            assert answer.status == 200  # after the redirect to the next one
            assert len(read_annotations(folder)["ann"]) == n + 1
        page = await (await session.get(url)).text()
        assert "Everything is decided" in page
        first = sheet.pairs[0].id
        page = await (await session.get(f"{url}?pair={first}")).text()
        assert re.search(r'value="B"[^>]*checked', page)
        assert ">r0</textarea>" in page
        await session.post(url, data={"pair": first, "choice": "tie", "reason": "", "tag": ""})
        return read_annotations(folder)["ann"][first].choice

    assert with_page(folder, work) == "tie"


def test_a_preference_without_a_reason_is_refused_and_what_was_typed_stays(folder):
    pair = read_sheet(folder).pairs[0].id

    async def work(session, url):
        said = {"pair": pair, "choice": "A", "reason": " ", "tag": "tool-use"}
        answer = await session.post(url, data=said)
        page = await answer.text()
        assert answer.status == 422
        assert "A is preferred without a reason" in page
        assert re.search(r'value="A"[^>]*checked', page)
        assert re.search(r'value="tool-use" selected', page)
        for wrong in ({"pair": "000-000000"}, {"choice": "C", "reason": "x"}):
            assert (await session.post(url, data={**said, **wrong})).status == 422
        assert (await session.get(f"{url}?pair=nope")).status == 404
        too_much = await session.post(url, data={**said, "reason": "x" * 100_000})
        assert too_much.status == 413

    with_page(folder, work)
    assert read_annotations(folder) in ({}, {"ann": {}})


def test_only_this_machines_own_browser_with_the_whole_address_is_answered(folder):
    async def work(session, url):
        base, token = url.rsplit("/", 2)[0], url.rsplit("/", 2)[1]
        assert len(token) >= 32
        for address in (f"{base}/", f"{base}/{token[:-1]}x/", f"{base}/x/{token}/"):
            assert (await session.get(address)).status == 404
        for headers, status in (
            ({"Host": "evil.example"}, 403),
            ({"Host": "127.0.0.1.evil.example:80"}, 403),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-origin"}, 200),
            ({"Origin": base}, 200),
        ):
            said = {"pair": read_sheet(folder).pairs[0].id, "choice": "tie"}
            assert (await session.get(url, headers=headers)).status == status, headers
            posted = await session.post(url, data=said, headers=headers)
            assert posted.status == status, headers
        assert (await session.put(url)).status == 405
        return len(read_annotations(folder)["ann"])

    assert with_page(folder, work) == 1


def test_hostile_replies_are_text_and_the_page_may_load_nothing(folder):
    async def work(session, url):
        answer = await session.get(url)
        return await answer.text(), answer.headers

    page, headers = with_page(folder, work)
    found = Tags(page)
    assert "&lt;script&gt;" in page
    assert not {"script", "img", "link", "iframe", "object"} & set(found.tags)
    assert not [a for a, _ in found.attributes if a.startswith("on") or a in ("src", "style")]
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["Referrer-Policy"] == "same-origin"
    for hidden in ("baseline", "candidate", "p@1"):
        assert hidden not in page


def test_a_session_at_a_terminal_is_not_written_over(folder):
    sheet = read_sheet(folder)

    async def work(session, url):
        with opened(folder, sheet, "ann"):
            said = {"pair": sheet.pairs[0].id, "choice": "tie"}
            answer = await session.post(url, data=said)
            return answer.status, await answer.text()

    status, page = with_page(folder, work)
    assert status == 409
    assert "is held by process" in page


def test_it_mounts_below_a_longer_path_of_another_server(folder):
    """As `harness view` does: `/<token>/blind/<name>/`."""
    pair = read_sheet(folder).pairs[0].id

    async def work():
        parent = web.Application()
        parent.add_subapp("/secret/blind/t/", application(folder, "secret", "ann"))
        runner = web.AppRunner(parent)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/secret/blind/t/"
        async with aiohttp.ClientSession() as session:
            answer = await session.post(url, data={"pair": pair, "choice": "tie"})
            assert (answer.status, str(answer.url)) == (200, url)
            page = await answer.text()
        await runner.cleanup()
        return page

    page = asyncio.run(work())
    assert "1 decided" in page
    assert f'href="?pair={pair}"' in page


def test_the_command_prints_the_address_and_ends_on_sigint(folder):
    program = "from harness_cli.main import main; import sys; sys.argv[0] = 'harness'; main()"
    words = ["blind", "annotate", str(folder), "--page", "--json", "--annotator", "ann"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words],
        cwd=folder.parents[1],
        stdout=subprocess.PIPE,
        env={**os.environ},
    )
    url = json.loads("".join(process.stdout.readline().decode() for _ in range(5)))["url"]

    async def work():
        async with aiohttp.ClientSession() as session:
            return (await session.get(url)).status

    assert asyncio.run(work()) == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
