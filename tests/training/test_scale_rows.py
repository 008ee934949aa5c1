"""Rows of other engines: from rollouts, and back to advantages."""

import math
import random

import pytest
import torch

from harness_cli.errors import UsageError
from harness_cli.training.advantages import gdpo
from harness_cli.training.losses import Clip, segment_policy_loss
from harness_cli.training.rewards import COLUMNS, CotPenalty, reward_row, segment_advantages
from harness_cli.training.rollouts import Rollout, Row
from harness_cli.training.scale.grouped import Placed, RowNote, note_of, row_advantages
from harness_cli.training.scale.segment_rows import segment_rows, whole_rows

PENALTY = CotPenalty()


def scores(rng):
    names = ("tool_rationality", "skill_selection", "accuracy", "effectiveness")
    return {name: rng.choice([0.0, 0.5, 1.0]) for name in names}


def line(rng, unscored=False):
    found = reward_row({} if unscored else scores(rng), {"tool": 150, "reply": 20}, PENALTY)
    return tuple(None if math.isnan(v) else v for v in found)


def bag(groups=3, group=4, seed=0):
    """Rows of whole groups, two a rollout, with the table that they make."""
    rng = random.Random(seed)
    rows, table = [], []
    for g in range(groups):
        for r in range(group):
            rewards = line(rng)
            table.append([math.nan if v is None else v for v in rewards])
            for segment in ("tool", "reply"):
                rows.append(Placed(f"g{g}", r, RowNote(segment=segment, rewards=rewards)))
    return rows, torch.tensor(table, dtype=torch.float64)


def test_rows_in_any_order_get_the_advantages_of_their_rollout_and_segment():
    rows, table = bag()
    wanted = segment_advantages(table, 4, PENALTY).values_NS
    order = list(range(len(rows)))
    random.Random(1).shuffle(order)
    shuffled = [rows[i] for i in order]
    values, dropped = row_advantages(shuffled, 4, PENALTY)
    for i, value in zip(order, values, strict=True):
        assert value == pytest.approx(float(wanted[i // 2, i % 2]), abs=1e-12)
    assert set(dropped) == {"tool", "reply"}


def test_by_hand_one_group_of_four_with_one_dimension_that_differs():
    # accuracy 1 1 0 0: mean 0.5, population deviation 0.5; effectiveness and q do not differ.
    notes = [(1.0, 1.0, a, 1.0, 0.0, 0.0) for a in (1.0, 1.0, 0.0, 0.0)]
    rows = [Placed("g", i, RowNote(segment="reply", rewards=n)) for i, n in enumerate(notes)]
    rows += [Placed("g", i, RowNote(segment="tool", rewards=n)) for i, n in enumerate(notes)]
    values, dropped = row_advantages(rows, 4, PENALTY)
    assert values == pytest.approx([1, 1, -1, -1, 0, 0, 0, 0])
    assert dropped == {"tool": 1.0, "reply": 0.0}


def test_padding_gets_nothing_and_shifts_nobody():
    rows, _ = bag()
    plain, _ = row_advantages(rows, 4, PENALTY)
    padded, _ = row_advantages([*rows[:5], Placed("pad", 0, None), *rows[5:]], 4, PENALTY)
    assert padded[5] == 0.0
    assert [*padded[:5], *padded[6:]] == pytest.approx(plain)


def test_a_rollout_that_failed_keeps_its_place_and_counts_in_no_mean():
    rows, table = bag(groups=1)
    left = [row for row in rows if row.rollout != 2]
    values, _ = row_advantages(left, 4, PENALTY)
    table[2] = torch.nan
    wanted = segment_advantages(table, 4, PENALTY).values_NS
    kept = [0, 1, 3]
    assert values == pytest.approx([float(wanted[i, s]) for i in kept for s in (0, 1)])


def test_a_segment_in_two_contexts_weighs_as_one():
    rows, _ = bag(groups=1)
    plain, _ = row_advantages(rows, 4, PENALTY)
    note = rows[0].note
    halves = [
        Placed("g0", 0, RowNote(segment="tool", rewards=note.rewards, share=share))
        for share in (0.25, 0.75)
    ]
    values, _ = row_advantages([*halves, *rows[1:]], 4, PENALTY)
    assert values[0] + values[1] == pytest.approx(plain[0])
    assert values[0] == pytest.approx(plain[0] * 0.25)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "other"}, "differ in state"),
        ({"request": "other"}, "differ in request"),
        ({"policy": "7"}, "differ in policy"),
        ({"rewards": (1.0,) * 5}, "5 rewards"),
        ({"rewards": (0.25,) * 6}, "differ in rewards"),
        ({"segment": "both"}, "is no segment"),
    ],
)
def test_what_is_no_group_is_refused(change, said):
    rows, _ = bag(groups=1)
    note = {"segment": "tool", "rewards": rows[0].note.rewards, **change}
    rows[0] = Placed("g0", 0, RowNote(**note))
    with pytest.raises(UsageError, match=said):
        row_advantages(rows, 4, PENALTY)


def test_more_rollouts_than_were_asked_for_are_refused():
    rows, _ = bag(groups=1)
    with pytest.raises(UsageError, match="3 were asked for"):
        row_advantages(rows, 3, PENALTY)


def test_a_row_of_another_loop_is_refused_by_name():
    with pytest.raises(UsageError, match="carries no rewards"):
        note_of(None)
    assert note_of({"segment": "tool", "rewards": [None] * 6}).rewards == (None,) * 6


def test_the_filter_looks_at_final_advantages_not_at_summed_rewards():
    # Two dimensions that cancel out in the sum still say something of their own.
    rewards = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])
    assert gdpo(rewards, 4).dropped < 1


def rollout(ids, segments, thoughts=None):
    row = Row(list(ids), list(segments), [0] * len(ids), [-0.1 * (i + 1) for i in range(len(ids))])
    tokens = {"tool": segments.count(1), "reply": segments.count(2)}
    return Rollout(rows=(row,), policy_id="p", tokens=tokens, cot={"tool": 0, "reply": 0})


def test_two_rows_share_their_tokens_and_have_a_mask_each():
    made = rollout([10, 11, 20, 21, 30, 40, 41], [0, 0, 1, 1, 0, 2, 2])
    tool, reply = segment_rows(made)
    assert (tool.segment, reply.segment) == ("tool", "reply")
    assert tool.prompt_ids == reply.prompt_ids == [10, 11]
    assert tool.response_ids == [20, 21]  # ends behind what it trains
    assert tool.response_mask == [1, 1]
    assert reply.response_ids == [20, 21, 30, 40, 41]
    assert reply.response_mask == [0, 0, 0, 1, 1]
    assert reply.logprobs == pytest.approx([0, 0, 0, -0.6, -0.7])
    assert (tool.share, reply.share) == (1.0, 1.0)


def test_a_segment_without_a_token_has_no_row():
    assert [r.segment for r in segment_rows(rollout([1, 2, 3], [0, 2, 2]))] == ["reply"]


def test_distillation_trains_both_segments_in_one_row():
    (row,) = whole_rows(rollout([10, 20, 30, 40], [0, 1, 0, 2]))
    assert row.response_mask == [1, 0, 1]
    assert row.segment == "whole"


def test_a_rewritten_context_makes_more_rows_whose_shares_sum_to_one():
    first = Row([1, 2, 3], [0, 1, 1], [0] * 3, [-1.0] * 3)
    second = Row([1, 4, 5, 6], [0, 1, 0, 2], [0] * 4, [-1.0] * 4)
    made = Rollout((first, second), "p", {"tool": 3, "reply": 1}, {"tool": 0, "reply": 0})
    rows = segment_rows(made)
    assert [(r.segment, r.share) for r in rows] == [
        ("tool", pytest.approx(2 / 3)),
        ("tool", pytest.approx(1 / 3)),
        ("reply", 1.0),
    ]


def test_the_engines_loss_over_the_rows_is_our_loss_over_the_segments():
    """What verl's `gspo` with `seq-mean-token-mean` computes, written out, against ours."""
    torch.manual_seed(0)
    made = rollout([1, 2, 3, 4, 5, 6, 7], [0, 0, 1, 1, 0, 2, 2])
    logp = torch.randn(1, 7, dtype=torch.float64) * 0.1 - 1
    old = logp + torch.randn(1, 7, dtype=torch.float64) * 0.02
    advantages = torch.tensor([[1.5, -0.7]], dtype=torch.float64)
    clip = Clip(0.003, 0.004)
    segments = torch.tensor([made.rows[0].segment_ids])
    ours = segment_policy_loss(logp, old, segments, advantages, clip=clip).loss
    terms = []
    for at, row in enumerate(segment_rows(made)):
        begin = len(row.prompt_ids)
        mask = torch.tensor(row.response_mask, dtype=torch.float64)
        span = slice(begin, begin + len(row.response_ids))
        ratio = (((logp - old)[0, span] * mask).sum() / mask.sum()).exp()
        a = advantages[0, at]
        token = -torch.min(ratio * a, ratio.clamp(1 - clip.low, 1 + clip.high) * a)
        terms.append((token * mask).sum() / mask.sum())
    assert torch.stack(terms).sum() / 2 == pytest.approx(float(ours), abs=1e-12)


def test_columns_are_the_dimensions_and_the_two_cot_scores():
    assert COLUMNS[-2:] == ("cot_tool", "cot_reply")
