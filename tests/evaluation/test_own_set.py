"""An evalset of one's own: made, run, dealt out over splits."""

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "commands"))
sys.path.insert(0, str(Path(__file__).parents[1] / "evolution"))

from program import call
from small_shop import make_shop

from harness_cli.evaluation.own_set import _dealt


@pytest.fixture
def shop(tmp_path):
    make_shop(tmp_path / "shop")
    return tmp_path / "shop"


def write_items(root, texts, category=lambda n: "chat"):
    """An evalset `mine` with one item for each text."""
    folder = root / "evalsets/mine"
    folder.mkdir(exist_ok=True)
    items = [
        {
            "id": f"i-{n}",
            "category": category(n),
            "request": {"comments": [{"viewer": f"v{n}", "text": text}]},
        }
        for n, text in enumerate(texts)
    ]
    text = "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)
    (folder / "items.jsonl").write_text(text)
    (folder / "evalset.yaml").write_text(
        f"# ours\nname: mine\nsplits:\n  dev: {len(items)}\nnotes: kept\n"
    )
    return folder


def splits_of(folder):
    lines = (folder / "items.jsonl").read_text().splitlines()
    return {(i := json.loads(line))["id"]: i["split"] for line in lines}


@pytest.mark.parametrize("agent", ["harness", "bare"])
def test_a_new_evalset_is_whole_and_runs_at_once(shop, agent):
    assert call(shop, "evalset", "new", "mine", "--agent", agent).code == 0
    assert call(shop, "evalset", "check", "mine").code == 0
    done = call(shop, "eval", "mine", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert report["run"]["agent"] == agent
    assert report["counts"]["passed"] + report["counts"]["failed"] == 1
    again = call(shop, "evalset", "new", "mine")
    assert again.code == 2
    assert "there is an evalset `mine`" in again.err


@pytest.mark.parametrize("name", ["../x", "a/b", ".x", "catalogue", " x"])
def test_a_name_that_leads_elsewhere_is_refused(shop, name):
    assert call(shop, "evalset", "new", name).code == 2
    assert not (shop / "x").exists()


def test_items_are_dealt_out_by_category_and_what_asks_the_same_stays_together(shop):
    texts = [f"question {n // 2}" for n in range(40)] + [f"price of {n}" for n in range(10)]
    folder = write_items(shop, texts, lambda n: "chat" if n < 40 else "price")
    words = ("evalset", "split", "mine", "--share", "dev=0.3", "--share", "test=0.7")
    assert call(shop, *words).code == 0
    found = splits_of(folder)
    assert sum(found[f"i-{n}"] == "dev" for n in range(40)) == 12
    assert sum(found[f"i-{n}"] == "dev" for n in range(40, 50)) == 3
    assert all(found[f"i-{n}"] == found[f"i-{n + 1}"] for n in range(0, 40, 2))
    assert call(shop, "evalset", "check", "mine").code == 0
    header = (folder / "evalset.yaml").read_text()
    assert "# ours" in header
    assert "notes: kept" in header
    before = (folder / "items.jsonl").read_bytes()
    assert call(shop, *words).code == 0
    assert (folder / "items.jsonl").read_bytes() == before, "the same seed, the same splits"
    assert call(shop, *words, "--seed", "1").code == 0
    assert splits_of(folder) != found


@given(st.permutations(range(12)), st.integers(0, 3))
def test_the_order_of_the_items_has_no_say(order, seed):
    items = [
        {"id": str(n), "category": "c", "request": {"prompt": f"ask {n // 2}"}} for n in range(12)
    ]
    shares = {"dev": 0.5, "test": 0.5}
    first = dict(zip(range(12), _dealt(items, shares, seed), strict=True))
    turned = _dealt([items[n] for n in order], shares, seed)
    assert dict(zip(order, turned, strict=True)) == first


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--share", "dev=0.3"), "sum to 1"),
        (("--share", "dev"), "--share dev: no share"),
        (("--share", "dev=x"), "`x` is no share above 0 and up to 1"),
        (("--share", "dev=-1", "--share", "test=2"), "no share"),
        (("--share", "dev=nan"), "no share"),
        (("--share", "dev=0.5", "--share", "dev=0.5"), "`dev` is named twice"),
        (("--share", "dev=99.9%", "--share", "test=0.001"), "no item would be in `test`"),
    ],
)
def test_shares_that_cannot_be_meant_are_refused_and_nothing_changes(shop, words, said):
    folder = write_items(shop, ["a", "b", "c"])
    before = (folder / "items.jsonl").read_bytes()
    done = call(shop, "evalset", "split", "mine", *words)
    assert done.code == 2
    assert said in done.err
    assert (folder / "items.jsonl").read_bytes() == before


def test_a_frozen_or_sealed_set_is_left_alone(shop):
    folder = write_items(shop, ["a", "b", "c", "d"])
    assert call(shop, "evalset", "seal", "mine", "dev").code == 0
    before = (folder / "items.jsonl").read_bytes()
    done = call(shop, "evalset", "split", "mine", "--share", "dev=0.5", "--share", "test=0.5")
    assert done.code == 2
    assert "frozen" in done.err
    assert (folder / "items.jsonl").read_bytes() == before
