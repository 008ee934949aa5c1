"""The page on which proposals are reviewed: the same decisions as at a terminal, safely."""

import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))
sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from chromium import needs_chromium, opened
from program import call
from small_shop import make_shop
from test_view import viewing

from harness_cli.evolution.proposal_file import hunks, new_proposal, read_proposal, write_proposal
from harness_cli.records.diagnosis import Decision, Edit, Op
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

EVIL = '<script>document.title="owned"</script><img src=x onerror="document.title=1">'
SKILL = "skills/aftersale/SKILL.md"


@pytest.fixture
def shop(tmp_path):
    """A project with a run and a waiting proposal of three hunks, one with a hostile rationale."""
    root = tmp_path / "shop"
    make_shop(root)
    assert call(root, "eval", "shop", "-q").code == 0
    project = Project.find(root)
    run = RunStore(project.runs).newest()
    config = run.config()
    rule = Op(
        op="replace", path=SKILL, search="- Say what a tool gave", text="- Say what tools gave"
    )
    name = Op(op="replace", path=SKILL, search="# aftersale\n", text="# After sales\n")
    other = Op(op="write", path="skills/greet/notes.md", text="Short notes.\n")
    proposal = new_proposal(
        (
            Edit(id="rules", module=SKILL, ops=(rule, name), rationale=EVIL,
                 predicted_fixes=("returns-01", "returns-04"), classes=("c",), risks="none"),
            Edit(id="notes", module="skills/greet/", ops=(other,), rationale="helps"),
        ),
        base=config.harness_id, base_commit=config.harness_commit, diagnosis=run.id, proposer="m",
    )  # fmt: skip
    write_proposal(root / "plan.yaml", proposal)
    return root


def states(root):
    return {n: op.decision for n, _, op in hunks(read_proposal(root / "plan.yaml"))}


@needs_chromium
def test_who_never_saw_a_harness_can_decide_on_a_wide_and_a_narrow_screen(shop):
    assert call(shop, "diagnose", "-q").code == 0
    proposal = read_proposal(shop / "plan.yaml")
    named = json.loads(call(shop, "diagnose", "show", "--json").out)["clusters"][0]
    told = "`item-qa` says `nothing` of it"
    first = replace(proposal.edits[0], classes=(named["id"],), rationale=told)
    write_proposal(shop / "plan.yaml", replace(proposal, edits=(first, *proposal.edits[1:])))
    with viewing(shop) as (_, where), opened(viewport={"width": 1280, "height": 900}) as (page, _):
        page.goto(where["url"] + "review/plan.yaml/")
        text = page.locator("main").inner_text()
        for words in (
            "the set of files that tell the agent what to do",
            "36 of 54 replies failed",
            "How to decide",
            "A skill: what the agent reads before it answers",
            "Part 2 of 2 of the edit rules",
            f"{named['label'].replace('`', '')}: {named['size']} of 36 failures",
            "it went by item-qa, where aftersale belongs",
            "item-qa says nothing of it",
        ):
            assert words in text, words
        card = page.locator("article").first
        diff, cases = (card.locator(part).bounding_box() for part in (".diff", ".beside details"))
        assert cases["x"] >= diff["x"] + diff["width"], "the cases stand beside the diff"
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.goto(where["url"] + "review/")
        assert page.evaluate("document.documentElement.scrollWidth") == 390


@needs_chromium
def test_a_reviewer_accepts_rejects_and_edits_in_a_browser_and_applies(shop):
    with viewing(shop) as (_, told), opened() as (page, seen):
        page.goto(told["url"])
        page.get_by_role("link", name="Proposals to review").click()
        page.get_by_role("link", name="plan.yaml").click()
        page.wait_for_selector("#progress")
        assert "3 of 3 still to decide" in page.locator("#progress").inner_text()
        first = page.locator("article").nth(0)
        assert EVIL in first.inner_text(), "shown as it is, run by nobody"
        assert "returns-01" in first.inner_text()
        assert "+- Say what tools gave" in first.locator(".diff").inner_text()
        first.get_by_label("Your name").fill("Ann")
        with page.expect_navigation():
            first.get_by_role("button", name="Accept", exact=True).click()
        assert "2 of 3" in page.locator("#progress").inner_text()
        second = page.locator("article").nth(1)
        second.get_by_label("Your name").fill("Ann")
        second.get_by_text("Edit the file that results").click()
        area = second.locator("textarea")
        area.fill(area.input_value().replace("# After sales", "# After the sale"))
        with page.expect_navigation():
            second.get_by_role("button", name="Accept as edited").click()
        third = page.locator("article").nth(2)
        third.get_by_label("Your name").fill("Ann")
        third.get_by_label("Reason").fill("not needed")
        with page.expect_navigation():
            third.get_by_role("button", name="Reject").click()
        assert "harness edit apply plan.yaml" in page.locator("#progress").inner_text()
        assert page.title() == "Review plan.yaml"
        assert seen.errors == []
    made = states(shop)
    assert [(d.state, d.by) for d in made.values()] == [
        ("accept", "Ann"), ("modify", "Ann"), ("reject", "Ann"),
    ]  # fmt: skip
    assert not any(d.script for d in made.values())
    assert made["notes"].reason == "not needed"
    assert call(shop, "edit", "apply", "plan.yaml", "-q").code == 0
    text = call(shop, "show", "skill", "aftersale", "--harness", "evolve/1")
    assert "# After the sale" in text.out or text.code != 0


def ask(told, path, *, method="GET", body=None, headers=None):
    from http.client import HTTPConnection
    from urllib.parse import urlencode, urlsplit

    where = urlsplit(told["url"])
    connection = HTTPConnection("127.0.0.1", told["port"])
    data = urlencode(body) if body is not None else None
    sent = {"Host": f"127.0.0.1:{told['port']}", **(headers or {})}
    if data is not None:
        sent.setdefault("Content-Type", "application/x-www-form-urlencoded")
    connection.request(method, where.path + path, data, sent)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.parametrize("public", [True, False])
def test_the_page_says_who_must_look_after_the_reviewer_of_a_public_channel(shop, public):
    gate = f"{{name: approvals, kind: approvals, public: {str(public).lower()}}}"
    (shop / "gates.yaml").write_text(f"schema: 1\ngates:\n  - {gate}\n")
    with viewing(shop) as (_, where):
        status, text = ask(where, "review/plan.yaml/")
    assert status == 200
    assert ("two other people must approve" in text) is public


GOOD = {"hunk": "rules#1", "state": "accept", "by": "Ann"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"by": " "}, "has no name"),
        ({"state": "reject"}, "a rejection needs a reason"),
        ({"state": "approve"}, "is no decision"),
        ({"hunk": "rules#9"}, "rules#9"),
    ],
)
def test_a_form_that_lacks_something_changes_nothing(shop, change, told):
    before = (shop / "plan.yaml").read_bytes()
    with viewing(shop) as (_, where):
        status, text = ask(where, "review/plan.yaml/", method="POST", body={**GOOD, **change})
    assert status in (404, 409)
    assert told in text
    assert (shop / "plan.yaml").read_bytes() == before


def test_other_origins_files_and_sizes_are_refused(shop):
    (shop / "secret.yaml").write_text("# no proposal\nkey: 1\n")
    (shop / "link.yaml").symlink_to(shop / "plan.yaml")
    before = (shop / "plan.yaml").read_bytes()
    with viewing(shop) as (_, where):
        evil = {"Origin": "http://evil.example"}
        posted = ask(where, "review/plan.yaml/", method="POST", body=GOOD, headers=evil)
        assert posted[0] == 403
        for name in ("secret.yaml", "link.yaml", "..%2Fplan.yaml", "harness.yaml"):
            assert ask(where, f"review/{name}/")[0] == 404
        large = {**GOOD, "text": "x" * (3 << 20)}
        assert ask(where, "review/plan.yaml/", method="POST", body=large)[0] == 413
        listed = ask(where, "review/")[1]
        assert "plan.yaml" in listed
        assert "secret.yaml" not in listed
    assert (shop / "plan.yaml").read_bytes() == before


def test_a_proposal_that_was_applied_or_is_damaged_says_so(shop):
    assert call(shop, "edit", "apply", "plan.yaml", "--accept", "all", "-q").code == 0
    (shop / "broken.yaml").write_bytes((shop / "plan.yaml").read_bytes()[:-200] + b"\n  nope: [")
    with viewing(shop) as (_, where):
        shown = ask(where, "review/plan.yaml/")[1]
        assert "it was applied before" in shown
        assert "<form" not in shown
        assert "broken.yaml" in ask(where, "review/")[1]
        assert ask(where, "review/broken.yaml/")[0] == 409


def test_what_the_file_holds_by_now_goes_before_what_the_page_showed(shop):
    with viewing(shop) as (_, where):
        ask(where, "review/plan.yaml/")
        path = shop / "plan.yaml"
        proposal = read_proposal(path)
        from harness_cli.evolution.review import decide

        other = Decision(state="reject", by="Bob", at="t", reason="r")
        write_proposal(path, decide(proposal, "notes", other))
        status, _ = ask(where, "review/plan.yaml/", method="POST", body=GOOD)
        assert status == 303
    made = states(shop)
    assert (made["notes"].by, made["rules#1"].by) == ("Bob", "Ann")
