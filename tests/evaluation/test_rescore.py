"""A run's rollouts scored again: the same numbers from the same verdicts, nothing asked."""

import json
import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))
sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))

from program import call
from small_shop import make_shop, write

from harness_cli.errors import BadFile, Interrupted
from harness_cli.evaluation.rescore import rescore
from harness_cli.evaluation.scorer import Window
from harness_cli.loop.status import status_of
from harness_cli.records.item import Item
from harness_cli.records.request import Request
from harness_cli.store.journal import scan
from harness_cli.store.project import Project
from harness_cli.store.runs import RunStore


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("rescore") / "shop"
    make_shop(root)
    assert call(root, "eval", "shop", "--repeat", "2", "-q").code == 0
    return root


@pytest.fixture
def shop(made, tmp_path):
    """A copy of its own, git and all."""
    import shutil

    root = tmp_path / "shop"
    shutil.copytree(made, root)
    return root


def newest(root):
    return RunStore(Project.find(root).runs).list()[0]


def without_names(run):
    """The canonical report without what says that it was scored again."""
    plain = json.loads(run.canonical.read_bytes())
    del plain["run"]["fresh"]
    for item in plain["items"]:
        item.pop("judging", None)
    return plain


def test_the_same_verdicts_give_the_same_report(shop):
    before = newest(shop)
    done = call(shop, "eval", "--rescore", before.id, "--json")
    assert done.code == 0, done.err
    after = newest(shop)
    assert after.id != before.id
    assert without_names(after) == without_names(before)
    config = after.config()
    assert config.rescored_of == before.id
    assert config.fresh is False
    assert after.report().timing == {"fresh": False}
    assert [r.wall_s for r in after.results()] == [None] * 108
    assert after.status() == "complete"


def test_every_verdict_taken_over_is_marked(shop):
    call(shop, "eval", "--rescore", "latest", "-q")
    kinds = [line.kind for line in scan(newest(shop).journal)]
    assert set(kinds) == {"note", "verdict", "item"}
    said = [json.loads(x.data) for x in scan(newest(shop).journal) if x.kind == "verdict"]
    assert len(said) == 108
    assert all(v["verdict"]["cached"] for v in said)


def test_trajectories_are_read_from_the_new_run_and_outlive_the_old_one(shop):
    before = newest(shop)
    wanted = {(t.item_id, t.repeat): t.reply for t in before.trajectories()}
    call(shop, "eval", "--rescore", before.id, "-q")
    after = newest(shop)
    assert after.rollouts.stat().st_ino == before.journal.stat().st_ino
    import shutil

    shutil.rmtree(before.path)
    found = {(t.item_id, t.repeat): t.reply for t in after.trajectories()}
    assert found == wanted
    assert call(shop, "show", "trajectory", "stock-00").code == 0
    assert call(shop, "diagnose", "-q").code == 0
    assert call(shop, "report", "-q").code == 0


def test_a_score_that_the_program_makes_otherwise_now_changes(shop, monkeypatch):
    """A verdict is not re-made, an assertion and a metric are."""
    from harness_cli.evaluation import metrics

    before = newest(shop)
    monkeypatch.setattr(metrics, "skill_selection", lambda item, trajectory: 0.25)
    outcome = rescore(Project.find(shop), before)
    found = {m.metric: m.mean for m in outcome.report.metrics}
    old = {m.metric: m.mean for m in before.report().metrics}
    assert found["skill_selection"] == 0.25 != old["skill_selection"]
    assert found["accuracy"] == old["accuracy"]


def test_a_run_that_did_not_end_stays_unfinished_and_its_journal_its_own(shop):
    before = newest(shop)
    lines = before.journal.read_bytes().splitlines(keepends=True)
    before.journal.write_bytes(b"".join(lines[: len(lines) // 2]) + lines[-1][:40])
    before.report_file.unlink()
    outcome = rescore(Project.find(shop), before)
    assert outcome.report.status == "interrupted"
    assert 0 < outcome.report.counts["missing"] < 108
    assert outcome.run.rollouts.stat().st_ino != before.journal.stat().st_ino
    assert sum(outcome.report.counts.values()) == outcome.report.planned == 108
    with pytest.raises(Interrupted) as caught:
        outcome.check()
    assert caught.value.hint.endswith(f"eval --resume {before.id}`, then --rescore {before.id}")
    waiting = [w.command for w in status_of(Project.find(shop)).waiting]
    assert [w for w in waiting if "resume" in w] == [f"harness eval --resume {before.id}"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--rescore latest --policy shop", "policy has no say"),
        ("shop --rescore latest", "evalset has no say"),
        ("--rescore latest --limit 3 --seed 4", "limit, seed has no say"),
        ("--rescore latest --max-tokens 5", "budget has no say"),
        ("--rescore no-such-run", "no run named `no-such-run`"),
    ],
)
def test_what_could_change_nothing_is_refused(shop, words, said):
    done = call(shop, "eval", *words.split())
    assert done.code == 2
    assert said in done.err
    assert len(RunStore(Project.find(shop).runs).list()) == 1


def change_items(shop):
    path = shop / "evalsets/shop/items.jsonl"
    path.write_text(path.read_text().replace("in stock?", "in stock now?"))


def change_catalogue(shop):
    path = shop / "evalsets/catalogue/catalogue.json"
    path.write_text(path.read_text().replace('"price": 39', '"price": 38'))


def change_judge(shop):
    run = newest(shop)
    config = msgspec.structs.replace(run.config(), judge_id="grounded@other")
    (run.path / "run.json").write_bytes(msgspec.json.encode(config))


def lose_trajectories(shop):
    journal = newest(shop).journal
    kept = [x for x in journal.read_bytes().splitlines(keepends=True) if b'trajectory"' not in x]
    journal.write_bytes(b"".join(kept))


def damage(shop):
    journal = newest(shop).journal
    data = bytearray(journal.read_bytes())
    data[len(data) // 3] ^= 1
    journal.write_bytes(bytes(data))


def lose_journal(shop):
    newest(shop).journal.unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (change_items, "`shop` or its catalogue changed"),
        (change_catalogue, "`shop` or its catalogue changed"),
        (change_judge, "its verdicts no longer hold"),
        (lose_trajectories, "no trajectory"),
        (damage, "does not match its checksum"),
        (lose_journal, "has no journal"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_no_longer_fits_is_said_and_no_run_is_left(shop, spoil, said):
    spoil(shop)
    done = call(shop, "eval", "--rescore", "latest")
    assert done.code == 2
    assert said in done.err
    assert len(RunStore(Project.find(shop).runs).list()) == 1


def test_a_run_that_was_scored_again_names_the_first(shop):
    first = newest(shop).id
    call(shop, "eval", "--rescore", "latest", "-q")
    done = call(shop, "eval", "--rescore", "latest")
    assert done.code == 2
    assert f"--rescore {first}" in done.err


def items(*ids):
    return iter([Item(id=i, request=Request()) for i in ids])


def test_a_window_reads_on_and_lets_go():
    window = Window(items("a", "b", "c"), 2)
    assert window.find("b").id == "b"
    assert set(window.waiting) == {"a", "b"}
    window.done("b")
    assert window.find("b").id == "b"
    window.done("b")
    assert set(window.waiting) == {"a"}
    assert window.find("c").id == "c"
    with pytest.raises(BadFile, match="`d`"):
        window.find("d")


def test_sealed_items_need_a_reason(shop):
    write(shop / "harness.yaml", (shop / "harness.yaml").read_text())
    assert call(shop, "eval", "shop", "--split", "test", "--reason", "first", "-q").code == 0
    done = call(shop, "eval", "--rescore", "latest")
    assert done.code == 2
    assert "--reason" in done.err
    assert call(shop, "eval", "--rescore", "latest", "--reason", "again", "-q").code == 0
    log = (shop / "evalsets/seal.log.jsonl").read_text()
    assert log.count('"again"') == 1
