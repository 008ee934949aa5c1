"""Votes are asked for once; what is damaged on disk is no vote; side by side nothing is lost."""

import asyncio
import logging
import subprocess
import sys

import pytest
from judged_cases import make_item, make_trajectory
from judging_endpoint import JudgeEndpoint, in_turns, panel_project, saying, serving, verdict

from harness_cli.judges.open import open_judge
from harness_cli.judges.panel.cache import VoteCache
from harness_cli.records.config import JudgeConfig
from harness_cli.records.verdict import Vote

KEY = "a" * 64
VOTE = Vote(voter="a", scores={"accuracy": 1.0, "effectiveness": 0.5}, reasons={"accuracy": "yes"})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "verdicts" / "final.votes"


def kept(path, *keys):
    cache = VoteCache(path)
    for key in keys or (KEY,):
        cache.put(key, VOTE)
    cache.close()
    return path


def test_the_last_vote_under_a_key_counts(path):
    cache = VoteCache(path)
    other = Vote(voter="a", scores={"accuracy": 0.0, "effectiveness": 0.0}, reasons={"a": "非"})
    for vote in (VOTE, other):
        cache.put(KEY, vote)
        assert cache.get(KEY) == vote
    cache.close()
    assert VoteCache(path).get(KEY) == other


def test_a_vote_comes_back_whole_also_for_another_program(path):
    assert VoteCache(kept(path)).get(KEY) == VOTE
    assert VoteCache(path).get("b" * 64) is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b'"yes"', b'"no!"'),
        lambda data: b"\x00" * len(data),
        lambda data: data.replace(b" ", b"", 1),
    ],
)
def test_a_damaged_entry_is_ignored_with_a_warning_and_can_be_kept_anew(path, damage, caplog):
    path = kept(path)
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING, logger="harness.judges"):
        cache = VoteCache(path)
        assert cache.get(KEY) is None
    assert "damaged entries of the vote cache `final.votes` are ignored" in caplog.text
    cache.put(KEY, VOTE)
    cache.close()
    assert VoteCache(path).get(KEY) == VOTE


def test_a_line_cut_short_does_not_take_the_next_one_with_it(path):
    path = kept(path)
    path.write_bytes(path.read_bytes()[:-20])
    kept(path, "b" * 64)
    assert VoteCache(path).get("b" * 64) == VOTE


def test_an_unwritable_place_costs_the_vote_nothing(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    cache = VoteCache(tmp_path / "file" / "final.votes")
    cache.put(KEY, VOTE)
    assert cache.get(KEY) is None
    assert "cannot be written" in caplog.text


WRITER = """
import sys
from pathlib import Path
from harness_cli.judges.panel.cache import VoteCache
from harness_cli.records.verdict import Vote
cache = VoteCache(Path(sys.argv[1]))
for n in range(200):
    cache.put(sys.argv[2] * 60 + f"{n:04d}", Vote(voter="a", reasons={"accuracy": "x" * 3000}))
"""


def test_programs_side_by_side_keep_all_their_votes(path):
    work = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), c]) for c in "ab"]
    assert [p.wait(60) for p in work] == [0, 0]
    cache = VoteCache(path)
    assert all(cache.get(c * 60 + f"{n:04d}") for c in "ab" for n in range(200))
    assert not cache.damaged


def test_a_secret_in_a_vote_is_not_written(path, monkeypatch):
    cache = VoteCache(path, lambda text: text.replace("sk-secret", "[redacted]"))
    cache.put(KEY, Vote(voter="a", reasons={"accuracy": "the key is sk-secret"}))
    cache.close()
    assert b"sk-secret" not in path.read_bytes()
    assert VoteCache(path).get(KEY).reasons["accuracy"] == "the key is [redacted]"


def test_the_same_case_is_paid_for_once_and_marked_as_cached(tmp_path, world):
    good, other = in_turns(verdict()), in_turns(verdict(effectiveness=1, accuracy=1))
    endpoint = JudgeEndpoint({"a": good, "b": other})
    with serving(endpoint) as url:
        project = panel_project(tmp_path / "p", url, ("a", "b"), {})

        def judged(reply="It is 89 yuan.", **options):
            async def one():
                judge = open_judge("final", JudgeConfig(panel=("a", "b")), project, **options)
                try:
                    return await judge.judge(make_item(world), make_trajectory(reply), world)
                finally:
                    await judge.close()

            return asyncio.run(one())

        first, asked = judged(), endpoint.calls.total()
        again = judged()
        assert endpoint.calls.total() == asked == 4
        assert (first.cached, again.cached) == (False, True)
        assert again.scores == first.scores
        assert all(v.cached for v in again.votes)
        judged("It is 79 yuan.")
        assert endpoint.calls.total() == asked + 4, "another reply is another case"
        judged(fresh=True)
        assert endpoint.calls.total() == asked + 8
        rubric = project.root / "harness_repo/judges/final/skills/rubric-accuracy/SKILL.md"
        rubric.write_text(rubric.read_text() + "\nAnother rule.\n")
        assert not judged().cached, "another rubric is another judge"


def test_an_unscored_vote_is_asked_for_again(tmp_path, world):
    endpoint = JudgeEndpoint({"a": lambda body: saying("hm")})
    with serving(endpoint) as url:
        project = panel_project(tmp_path / "p", url, ("a",), {})

        async def one():
            judge = open_judge("final", JudgeConfig(panel=("a",)), project)
            try:
                return await judge.judge(make_item(world), make_trajectory("89"), world)
            finally:
                await judge.close()

        assert asyncio.run(one()).scores["accuracy"] is None
        endpoint.models["a"] = in_turns(verdict())
        found = asyncio.run(one())
    assert found.scores["accuracy"] == 1.0
    assert not found.cached
