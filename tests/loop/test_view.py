"""`harness view` as a process: what it serves, whom it refuses, how it ends."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))
sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from aiohttp import web
from chromium import needs_chromium, opened, ready
from program import call
from small_shop import make_shop

from harness_cli.loop.view.app import Mount, Viewer
from harness_cli.loop.view.guard import Guard
from harness_cli.loop.view.mounts import sheets
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

PROGRAM = "from harness_cli.main import main; import sys; sys.argv[0] = 'harness'; main()"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    root = tmp_path_factory.mktemp("view") / "shop"
    make_shop(root)
    assert call(root, "eval", "shop", "--limit", "6", "-q").code == 0
    damaged = root / ".harness/runs/19990101-000000-000dead"
    damaged.mkdir()
    (damaged / "run.json").write_text("{")
    return root


@contextlib.contextmanager
def viewing(root, *args):
    """A running `harness view --json`: the process and what it printed."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "view", "--json", *args],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said = ""
        while not said.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        yield process, json.loads(said)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="module")
def server(shop):
    with viewing(shop) as (_, said):
        yield said


def ask(said, path=None, **headers):
    """Status, headers and text; `path` is below the token, or absolute with a leading `//`."""
    connection = HTTPConnection("127.0.0.1", said["port"], timeout=60)
    base = "/" + said["url"].split("/", 3)[3]
    target = path[1:] if path and path.startswith("//") else base + (path or "")
    connection.request("GET", target, headers={k.replace("_", "-"): v for k, v in headers.items()})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers, text


def test_it_listens_on_loopback_alone_and_the_address_holds_a_long_key(server):
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", server["url"])
    with contextlib.closing(socket.socket()) as other:
        other.bind(("127.0.0.2", server["port"]))  # taken, were the server on every address


def test_the_first_page_lists_runs_and_says_which_are_damaged(server, shop):
    status, headers, text = ask(server)
    assert status == 200
    run = RunStore(Project.find(shop).runs).list()[0].id
    assert f"runs/{run}" in text
    assert "19990101-000000-000dead" in text
    assert "the run is damaged" not in text  # the reason, not the hint
    assert "run.json" in text
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers.get_all("Content-Security-Policy") == ["frame-ancestors 'none'"]
    assert headers["Access-Control-Allow-Origin"] is None


def test_a_run_is_its_report(server):
    status, headers, text = ask(server, "runs/latest")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert 'id="data"' in text
    assert ask(server, "runs/latest")[2] == text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("runs/no-such-run", 404, "no run named"),
        ("runs/19990101-000000-000dead", 409, "run.json"),
        ("elsewhere", 404, ""),
        ("runs/..%2f..%2fharness.yaml", 404, ""),
        ("runs/%3Cscript%3Ealert(1)%3C%2Fscript%3E", 404, "&lt;script&gt;"),
    ],
)
def test_what_is_not_there_is_said(server, path, status, said):
    found = ask(server, path)
    assert found[0] == status
    assert said in found[2]
    assert "<script>alert" not in found[2]
    assert found[1]["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:{port}"}, 403),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Host": "127.0.0.1:1"}, 403),
        ({"Host": "localhost:{port}"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
    ],
)
def test_names_and_origins_that_are_not_ours_are_refused(server, headers, status):
    filled = {k: v.format(port=server["port"]) for k, v in headers.items()}
    found, _, text = ask(server, **filled)
    assert found == status
    if status == 403:
        assert "runs/" not in text


@pytest.mark.parametrize("path", ["///", "///runs/latest", "//wrong-token/", "//favicon.ico", "//"])
def test_without_the_key_there_is_nothing(server, path):
    status, _, text = ask(server, path)
    assert status == 404
    assert "run" not in text.replace("harness view", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_it_cleanly(shop, number):
    with viewing(shop, "--port", "0") as (process, said):
        assert ask(said)[0] == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "Traceback" not in err
        assert err == out == ""
    with contextlib.closing(socket.socket()) as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", said["port"]))


def test_a_port_in_use_is_said_with_the_way_out(shop, server):
    done = call(shop, "view", "--port", str(server["port"]))
    assert done.code == 2
    assert done.err == (
        f"error: port {server['port']} is in use\n\nhint: --port 0 takes one that is free\n"
    )


def test_a_port_that_is_no_port_is_a_usage_error(shop):
    assert call(shop, "view", "--port", "70000").code == 2


def test_the_key_is_in_no_log(shop, tmp_path):
    """Not in the log that `-v` starts either."""
    with viewing(shop, "-v") as (process, said):
        ask(said)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert said["url"].split("/")[3] not in err


def test_a_mounted_application_is_guarded_and_listed(shop, tmp_path):
    """The seam: a real sub-application behind the real guard, in this process."""
    import asyncio

    from aiohttp import ClientSession

    async def hello(_):
        return web.Response(text="annotate")

    sub = web.Application()
    sub.router.add_get("/", hello)

    async def run():
        guard = Guard("t" * 32)
        viewer = Viewer(
            Project.find(shop), guard, tmp_path, [Mount("blind/one", "Blind <one>", sub)]
        )
        runner = web.AppRunner(viewer.app())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        guard.port = runner.addresses[0][1]
        base = f"http://127.0.0.1:{guard.port}"
        async with ClientSession() as session:
            found = []
            for path, headers in (
                (f"/{guard.token}/blind/one/", {}),
                (f"/{guard.token}/blind/one/", {"Origin": "http://evil.example"}),
                ("/blind/one/", {}),
                (f"/{guard.token}/", {}),
            ):
                async with session.get(base + path, headers=headers) as answer:
                    found.append((answer.status, await answer.text()))
        await runner.cleanup()
        return found

    found = asyncio.run(run())
    assert [status for status, _ in found] == [200, 403, 404, 200]
    assert found[0][1] == "annotate"
    assert "Blind &lt;one&gt;" in found[3][1]


def test_sheets_are_found_once_by_name(shop):
    project = Project.find(shop)
    for place in ("blind/one", ".harness/blind/one", ".harness/blind/two"):
        (project.root / place).mkdir(parents=True)
        (project.root / place / "sheet.json").write_text("{}")
    found = [p.relative_to(project.root).as_posix() for p in sheets(project)]
    for place in ("blind/one", ".harness/blind/one", ".harness/blind/two"):
        (project.root / place / "sheet.json").unlink()
    assert found == ["blind/one", ".harness/blind/two"]


@needs_chromium
def test_a_browser_lists_searches_and_opens_a_run(server, shop):
    with opened() as (page, seen):
        ready(page, server["url"])
        assert page.locator("#runs tbody tr").count() == 2
        page.locator("#search").fill("grounded")
        assert page.locator("#runs tbody tr:visible").count() == 1
        page.locator("#language").click()
        assert page.locator("h1").inner_text() == "运行"
        page.locator("#runs a").first.click()
        page.wait_for_selector("html[data-ready] #table tbody tr")
        page.locator("button.open").first.click()
        page.wait_for_selector("#detail-body h3")
        assert seen.errors == []
        assert {u.split("/")[2] for u in seen.requests} == {f"127.0.0.1:{server['port']}"}
        assert not [u for u in seen.requests if "favicon" in u]


@pytest.fixture
def blind(tmp_path):
    """A project with two runs that answer differently, and a blind test of them."""
    root = tmp_path / "shop"
    make_shop(root)
    assert call(root, "eval", "shop", "-q").code == 0
    script = root / "s.yaml"
    script.write_text(script.read_text().replace("Hello and", "Good evening and"))
    assert call(root, "eval", "shop", "-q").code == 0
    new, old = (run.id for run in RunStore(Project.find(root).runs).list())
    made = call(root, "blind", "make", old, new, "--json")
    assert made.code == 0, made.err
    return root, Path(json.loads(made.out)["sheet"])


@needs_chromium
def test_a_blind_test_is_annotated_in_the_browser_below_the_same_key(blind):
    root, sheet = blind
    with viewing(root) as (_, said), opened() as (page, seen):
        ready(page, said["url"])
        page.get_by_text(f"Blind test {sheet.name}").click()
        page.wait_for_selector("form")
        assert page.url == f"{said['url']}blind/{sheet.name}/"
        page.locator("input[type=radio]").last.check()
        answers = []
        page.on("response", lambda r: answers.append((r.request.method, r.status)))
        with page.expect_navigation():
            page.locator("button").last.click()
        assert answers[0][0] == "POST"
        assert all(status < 400 for _, status in answers), answers
        assert seen.errors == []
    kept = [p for p in sheet.iterdir() if p.name != "sheet.json"]
    assert kept, "no annotation was kept"
