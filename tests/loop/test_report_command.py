"""`harness report`: what it is compared with, what it refuses, what it leaves behind."""

import json
import re
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))
sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call
from small_shop import git, make_shop

from harness_cli.records.canonical import write_json
from harness_cli.records.manifest import Channel, Predicate
from harness_cli.release.channels import switched, write_channel
from harness_cli.release.manifest import statement
from harness_cli.store.locks import locked
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore

LABELS = [
    {"id": f"l-{n}", "item_id": f"stock-{n:02}", "reply": text, "accuracy": 1, "effectiveness": e}
    for n, (text, e) in enumerate((("12 are left.", 1), ("It is made of steel.", 0)))
    if n % 3 == 0
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two harnesses of one line, a run of each: the base one, then one with another skill text."""
    root = tmp_path_factory.mktemp("report") / "shop"
    make_shop(root)
    assert call(root, "eval", "shop", "-q").code == 0
    skill = root / "harness_repo/skills/greet/SKILL.md"
    skill.write_text(skill.read_text().replace("nothing else", "and no more"))
    git(root, "checkout", "-q", "-b", "evolve/1")
    git(root, "commit", "-q", "-a", "-m", "greet: shorter\n\n- say no more than a tool gave")
    assert call(root, "eval", "shop", "-q").code == 0
    return root


@pytest.fixture
def shop(made, tmp_path):
    root = tmp_path / "shop"
    shutil.copytree(made, root)
    return root


def runs(root):
    """The second run, then the first."""
    return RunStore(Project.find(root).runs).list()


def page(root, *words):
    done = call(root, "report", *words, "-o", "page.html", "--json")
    assert done.code == 0, done.err
    return json.loads(done.out), (root / "page.html").read_text("utf-8")


def serve(root, run):
    """The project's channel serves the harness of a run."""
    project = Project.find(root)
    config = run.config()
    manifest = statement(
        Predicate(
            id="m1", created="m1", policy={"id": config.policy_id},
            harness={"tree": config.harness_id}, inventory=(), tools_sha256="", mcp_lock_sha256="",
            thresholds={}, evalsets={}, catalogue_sha256="", judge={}, gates_sha256="",
            evidence=(), gates=(), approvals=(),
        )
    )  # fmt: skip
    write_json(project.manifests / "m1.json", manifest)
    channel = switched(
        Channel(name="dev"), policy="m1", harness="m1", action="promote", by="A", at="now"
    )
    write_channel(project.manifests, channel)


def words_of(text):
    """The page as text, without tags; data and script left out."""
    return re.sub(r"<[^>]+>", " ", text.split('<script type="application/json"')[0])


def test_without_a_channel_there_is_no_incumbent_and_the_page_says_why(shop):
    said, text = page(shop)
    assert said["incumbent"] is None
    assert "channel `dev` serves nothing yet" in words_of(text)
    assert said["items"] == said["planned"] == 54
    assert said["bytes"] == (shop / "page.html").stat().st_size


def test_the_incumbent_is_a_whole_run_of_what_the_channel_serves(shop):
    second, first = runs(shop)
    serve(shop, first)
    said, text = page(shop)
    assert (said["run"], said["incumbent"]) == (second.id, first.id)
    assert "serves its harness" in words_of(text)
    assert 'id="changes"' in text
    # the run of the served harness itself has nothing to be compared with
    said, text = page(shop, first.id)
    assert said["incumbent"] is None
    assert "no other whole run" in words_of(text)


@pytest.mark.parametrize(
    "change",
    [{"judge_id": "grounded@other"}, {"policy_id": "other@1"}, {"agent": "react"}, {"limit": 9}],
    ids=lambda c: next(iter(c)),
)
def test_a_run_that_differs_in_more_than_its_harness_is_no_incumbent(shop, change):
    _, first = runs(shop)
    serve(shop, first)
    config = msgspec.structs.replace(first.config(), **change)
    write_json(first.path / "run.json", config)
    assert page(shop, "latest")[0]["incumbent"] is None


def test_a_damaged_run_of_the_project_is_passed_over(shop):
    second, first = runs(shop)
    serve(shop, first)
    broken = first.path.parent / "99990101-000000-000dead"
    broken.mkdir()
    (broken / "run.json").write_text("{")
    said, text = page(shop, second.id)
    assert said["incumbent"] == first.id
    assert "evolution record cannot be made" in words_of(text)


def test_the_evolution_record_is_drawn_where_there_are_stages(shop):
    said, text = page(shop)
    assert said["run"] == runs(shop)[0].id
    assert "<title>Evolution record</title>" in text
    stages = re.search(r'<table id="stages">.*?</table>', text, re.DOTALL)[0]
    assert "base" in words_of(stages)
    assert "evolution 1" in words_of(stages)
    assert "this run" in words_of(stages)


def test_the_identity_is_whole(shop):
    run = runs(shop)[0]
    config = run.config()
    _, text = page(shop)
    shown = words_of(text)
    for value in (
        config.id,
        config.evalset.digest,
        config.evalset.catalogue_digest,
        config.harness_id,
        config.harness_commit,
        config.judge_id,
        config.policy_id,
    ):
        assert value in shown
    assert "of N" in shown
    report = run.report()
    assert f"<strong>{report.counts['failed']}</strong> failed" in text


def test_an_uncommitted_harness_is_said(shop):
    (shop / "harness_repo/fallback.md").write_text("Another sentence.\n")
    assert call(shop, "eval", "shop", "--limit", "3", "-q").code == 0
    assert "uncommitted changes" in words_of(page(shop)[1])


def test_given_answers_are_never_timed(shop):
    lines = [json.dumps({"id": "stock-00", "reply": "12 left"})]
    (shop / "answers.jsonl").write_text("\n".join(lines))
    assert call(shop, "eval", "shop", "--responses", "answers.jsonl", "-q").code == 0
    shown = words_of(page(shop)[1])
    assert "nothing here is timed" in shown
    assert "Nothing was timed" in shown
    assert "53 of 54 rollouts have no score" in shown


def test_agreement_is_drawn_from_the_file_that_judge_agree_prints(shop):
    (shop / "labels.jsonl").write_text("\n".join(json.dumps(x) for x in LABELS))
    done = call(shop, "judge", "agree", "labels.jsonl", "--evalset", "shop", "--json")
    (shop / "agreed.json").write_text(done.out)
    _, text = page(shop, "latest", "--agreement", "agreed.json")
    assert "<title>Agreement: accuracy</title>" in text
    assert "agreed.json" in words_of(text)
    assert "No agreement record" not in words_of(text)


@pytest.mark.parametrize("text", ["{", "[]", '{"judge": "x"}', ""])
def test_an_agreement_file_that_is_none_is_refused(shop, text):
    (shop / "agreed.json").write_text(text)
    done = call(shop, "report", "--agreement", "agreed.json", "-o", "page.html")
    assert done.code == 2
    assert "agreed.json" in done.err
    assert "harness judge agree" in done.err
    assert not (shop / "page.html").exists()


def test_a_run_that_was_killed_is_shown_as_far_as_it_came(shop):
    run = runs(shop)[0]
    lines = run.journal.read_bytes().splitlines(keepends=True)
    run.journal.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[-1][:30])
    run.report_file.unlink()
    said, text = page(shop)
    assert said["status"] == "killed"
    assert 0 < said["items"] < said["planned"] == 54
    assert f"{said['items']} of 54 rollouts are in" in words_of(text)
    assert f"<strong>{54 - said['items']}</strong> missing" in text


def test_a_run_that_is_being_written_is_called_partial(shop):
    run = runs(shop)[0]
    with locked(run.lock, what="run", if_locked="fail"):
        said, text = page(shop)
    assert said["status"] == "running"
    assert "still being written; 54 of 54" in words_of(text)


def test_a_run_before_its_first_record_is_an_empty_page(shop):
    run = runs(shop)[0]
    run.journal.unlink()
    run.report_file.unlink()
    said, text = page(shop)
    assert (said["items"], said["planned"]) == (0, 54)
    assert '"items":[\n]}' in text


def damage(run):
    data = bytearray(run.journal.read_bytes())
    data[len(data) // 2] ^= 4
    run.journal.write_bytes(bytes(data))


def newer_run(run):
    path = run.path / "run.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 7'))


def newer_report(run):
    path = run.report_file
    head, mark, rest = path.read_text().rpartition('"schema": 1')
    path.write_text(head + '"schema": 9' + rest if mark else "")


def no_json(run):
    (run.path / "run.json").write_text("not json")


def lost_text(run):
    lines = run.journal.read_bytes().splitlines(keepends=True)
    longer = [
        x.replace(b'"content":"You are a host', b'"content":{"$text":"gone"},"x":"') for x in lines
    ]
    from harness_cli.store.journal import data_of, line_of

    fixed = []
    for old, new in zip(lines, longer, strict=True):
        fixed.append(old if old == new else line_of(new[new.index(b'"record":') + 9 : -2]))
    assert all(data_of(x) for x in fixed)
    assert fixed != lines
    run.journal.write_bytes(b"".join(fixed))


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (damage, "does not match its checksum"),
        (newer_run, "schema 7 is not known"),
        (newer_report, "schema 9 is not known"),
        (no_json, "run.json"),
        (lost_text, "lacks the text `gone`"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_is_wrong_with_the_run_is_said_and_an_older_page_stays(shop, spoil, said):
    spoil(runs(shop)[0])
    (shop / "page.html").write_text("the page of yesterday")
    before = sorted(p.name for p in shop.iterdir())
    done = call(shop, "report", "-o", "page.html")
    assert done.code == 2
    assert said in done.err
    assert "hint: " in done.err or said.startswith("lacks")
    assert (shop / "page.html").read_text() == "the page of yesterday"
    assert sorted(p.name for p in shop.iterdir()) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("no-such-run", "no run named `no-such-run`"),
        ("latest no-such-run", "no run named `no-such-run`"),
        ("latest latest", "is compared with itself"),
        ("latest --max-size 0", "max-size"),
    ],
)
def test_runs_that_are_not_there_are_named(shop, words, said):
    done = call(shop, "report", *words.split())
    assert done.code == 2
    assert said in done.err


def test_a_named_incumbent_must_be_comparable(shop):
    second, first = runs(shop)
    config = msgspec.structs.replace(first.config(), judge_id="grounded@other")
    write_json(first.path / "run.json", config)
    done = call(shop, "report", second.id, first.id)
    assert done.code == 2
    assert "judges differ" in done.err


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("no/such/folder/page.html", "No such file or directory"),
        ("harness.yaml/page.html", "Not a directory"),
        ("evalsets", "Is a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_called_by_the_name_that_was_asked_for(shop, target, said):
    done = call(shop, "report", "-o", target)
    assert done.code == 1
    assert f"{target}`: {said}" in done.err
    assert ".part" not in done.err
    assert "hint: " in done.err


def test_secrets_of_the_environment_are_in_no_page(shop, monkeypatch):
    """Journals are redacted when written; what became a secret later is masked here."""
    reply = next(r.reply for r in runs(shop)[0].results() if r.reply)
    assert reply in page(shop)[1]
    monkeypatch.setenv("SHOP_TOKEN", reply)
    assert reply not in page(shop)[1]


def test_a_run_that_was_scored_again_says_of_which(shop):
    first = runs(shop)[0].id
    assert call(shop, "eval", "--rescore", "latest", "-q").code == 0
    said, text = page(shop)
    assert f"Scored again from run {first}" in words_of(text)
    assert said["items"] == 54
    assert said["trajectories_left_out"] == 0
