"""Advantages: by hand, in float64, by property, and where TRL and verl do otherwise, shown."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness_cli.errors import UsageError
from harness_cli.training.advantages import gdpo, grpo, leave_one_out
from harness_cli.training.rewards import (
    COLUMNS,
    CotPenalty,
    cot_score,
    reward_row,
    segment_advantages,
)

NAN = float("nan")
F64 = torch.float64
# Two groups of four, two dimensions: in the second group one is flat, the other 0, 0, 0, 0.1.
TWO_GROUPS = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0], [1, 0], [1, 0], [1, 0.1]])
REWARDS = st.lists(
    st.lists(st.integers(0, 20).map(lambda n: n / 20), min_size=3, max_size=3),
    min_size=8,
    max_size=8,
)
SETTINGS = settings(max_examples=60, deadline=None)


def close(found, wanted, tolerance=1e-12):
    torch.testing.assert_close(
        found.to(F64), torch.tensor(wanted, dtype=F64), atol=tolerance, rtol=0
    )


def test_grpo_divides_by_the_population_deviation():
    # mean 0.5, deviations ±0.5, σ = 0.5
    close(grpo(torch.tensor([1.0, 0.0, 1.0, 0.0]), 4).values_N, [1, -1, 1, -1])
    root = math.sqrt(3) / 2  # 0.5 / sqrt(1/3)
    found = grpo(torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=F64), 4, std="sample")
    close(found.values_N, [root, -root, root, -root])


def test_leave_one_out_compares_with_the_others_mean():
    found = leave_one_out(torch.tensor([1.0, 0.0, 0.0, 0.0, 2.0, NAN, 4.0, 6.0], dtype=F64), 4)
    close(found.values_N, [1, -1 / 3, -1 / 3, -1 / 3, -3, 0, 0, 3])
    assert found.valid_N.tolist() == [True, True, True, True, True, False, True, True]


def test_leave_one_out_of_a_rollout_that_stands_alone_is_zero():
    assert leave_one_out(torch.tensor([0.7, NAN]), 2).values_N.tolist() == [0.0, 0.0]


def test_gdpo_by_hand():
    """Group 1: each dimension ±1, sums 0, 0, 2, -2, σ √2. Group 2: three equal, one apart."""
    found = gdpo(TWO_GROUPS.to(F64), 4)
    two, three = math.sqrt(2), math.sqrt(3)
    close(found.values_N, [0, 0, two, -two, -1 / three, -1 / three, -1 / three, three])
    assert found.live_N.tolist() == [False, False, True, True, True, True, True, True]
    assert found.dropped == 0.25


def test_the_final_normalisation_within_the_group_is_not_that_over_the_batch():
    """The same rewards both ways, with TRL's deviation and epsilon (reference/training.md 2.5)."""
    ours = gdpo(TWO_GROUPS.to(F64), 4, std="sample", eps=1e-4)
    trl = gdpo(TWO_GROUPS.to(F64), 4, std="sample", eps=1e-4, final="batch", floor=0.0)
    close(ours.values_N, [0, 0, 1.225, -1.225, -0.5, -0.5, -0.5, 1.5], 1e-3)
    close(trl.values_N, [0, 0, 1.528, -1.528, -0.44, -0.44, -0.44, 1.321], 1e-3)
    plain = gdpo(TWO_GROUPS.to(F64), 4, final="none")
    close(plain.values_N, [0, 0, 2, -2, -1 / 3**0.5, -1 / 3**0.5, -1 / 3**0.5, 3**0.5])


def verl_gdpo(rewards, group, lengths):
    """verl 0.9.1: unbiased deviation and 1e-6 in the group, whitening over tokens at the end."""
    grouped = rewards.view(-1, group, rewards.shape[1])
    spread = grouped.std(1, keepdim=True)
    summed = ((grouped - grouped.mean(1, keepdim=True)) / (spread + 1e-6)).sum(-1).reshape(-1)
    tokens = torch.repeat_interleave(summed, lengths)
    return (summed - tokens.mean()) / (tokens.var() + 1e-8).sqrt()


def test_verl_ends_in_a_whitening_in_which_long_rollouts_weigh_more():
    rewards = TWO_GROUPS.to(F64)
    six = verl_gdpo(rewards, 4, torch.full((8,), 6))  # what verl itself printed for six tokens each
    close(six, [0, 0, 1.616, -1.616, -0.466, -0.466, -0.466, 1.399], 1e-3)
    even = verl_gdpo(rewards, 4, torch.full((8,), 100_000))
    batch = gdpo(rewards, 4, final="batch", floor=0.0)
    torch.testing.assert_close(even, batch.values_N, atol=1e-3, rtol=0)  # equal lengths: as batch
    uneven = verl_gdpo(rewards, 4, torch.tensor([10, 10, 500, 10, 10, 10, 10, 10]))
    assert (uneven - batch.values_N).abs().max() > 0.3


def test_a_spread_below_the_floor_contributes_nothing():
    rewards = torch.tensor([[0.0, 0.5], [1.0, 0.501], [0.0, 0.5], [1.0, 0.5]], dtype=F64)
    close(gdpo(rewards, 4).values_N, [-1, 1, -1, 1])
    assert gdpo(rewards, 4, floor=0.0).values_N[1] != gdpo(rewards, 4, floor=0.0).values_N[3]


def test_rounding_noise_never_becomes_a_signal():
    noisy = torch.full((4, 1), 0.1) + torch.tensor([[0.0], [1e-8], [0.0], [-1e-8]])
    assert gdpo(noisy, 4).values_N.tolist() == [0.0] * 4
    cancelled = torch.tensor([[0.1, 0.9], [0.9, 0.1], [0.3, 0.7], [0.7, 0.3]])
    assert gdpo(cancelled, 4).values_N.tolist() == [0.0] * 4
    assert gdpo(cancelled, 4).dropped == 1.0


def test_a_rollout_at_its_groups_mean_has_no_advantage_whatever_rounding_leaves():
    thirds = torch.tensor([0.0, 0.1, 0.2], dtype=F64)
    assert thirds.mean() != thirds[1]
    found = grpo(thirds, 3)
    assert found.live_N.tolist() == [True, False, True]
    assert found.dropped == pytest.approx(1 / 3)


def test_a_filter_on_summed_rewards_would_drop_what_gdpo_can_use():
    """Sums 1, 1, 1, 1, but the second dimension is rarer, so it says more."""
    rewards = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=F64)
    assert grpo(rewards.sum(1), 4).dropped == 1.0
    three = torch.cat([rewards, torch.tensor([[0.0], [0.0], [1.0], [0.0]], dtype=F64)], 1)
    assert gdpo(three, 4).dropped < 1.0


def test_not_applicable_is_not_zero():
    """A NaN counts in no mean and no deviation; a rollout of NaNs alone is invalid."""
    rewards = torch.tensor([[1.0, NAN], [0.0, 1.0], [NAN, 0.0], [NAN, NAN]], dtype=F64)
    found = gdpo(rewards, 4, final="none")
    close(found.values_N, [1, 0, -1, 0])
    assert found.valid_N.tolist() == [True, True, True, False]
    normal = gdpo(rewards, 4)
    root = math.sqrt(1.5)  # over three, not four
    close(normal.values_N, [root, 0, -root, 0])


def test_a_group_with_one_scored_rollout_teaches_nothing():
    found = gdpo(torch.tensor([[0.9], [NAN], [NAN], [NAN]]), 4)
    assert found.values_N.tolist() == [0.0] * 4
    assert found.valid_N.tolist() == [True, False, False, False]


def test_the_weight_applies_after_the_first_normalisation():
    rewards = torch.tensor([[0.0, 0.0], [1.0, 0.1]], dtype=F64)
    close(gdpo(rewards, 2, weights=(1.0, -0.1), final="none").values_N, [-0.9, 0.9])


def test_alone_in_its_group_a_small_weight_still_gets_unit_scale():
    """The report's formula, said aloud: λ does not hold where nothing but the CoT differs."""
    rewards = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=F64)
    close(gdpo(rewards, 2, weights=(1.0, -0.1)).values_N, [1, -1])
    close(gdpo(rewards, 2, weights=(1.0, -0.1), final="none").values_N, [0.1, -0.1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gdpo(torch.zeros(5, 2), 4), "no whole number of groups"),
        (lambda: grpo(torch.zeros(5), 4), "no whole number of groups"),
        (lambda: gdpo(torch.zeros(4, 2), 4, weights=(1.0,)), "1 weights for 2"),
        (lambda: CotPenalty(low=200, high=100), "0 <= low < high"),
    ],
)
def test_what_cannot_be_normalised_is_refused(call, message):
    with pytest.raises(UsageError, match=message):
        call()


@given(REWARDS, st.floats(0.5, 4), st.floats(-3, 3))
@SETTINGS
def test_gdpo_does_not_change_with_shift_and_scale(rewards, scale, shift):
    table = torch.tensor(rewards, dtype=F64)
    before = gdpo(table, 4, floor=1e-6)
    after = gdpo(table * scale + shift, 4, floor=1e-6)
    torch.testing.assert_close(before.values_N, after.values_N, atol=1e-6, rtol=0)


@given(REWARDS, st.permutations(range(4)))
@SETTINGS
def test_the_order_of_rollouts_in_a_group_does_not_matter(rewards, order):
    table = torch.tensor(rewards, dtype=F64)
    moved = torch.cat([table[:4][list(order)], table[4:]])
    for final in ("group", "batch", "none"):
        before = gdpo(table, 4, final=final).values_N
        after = gdpo(moved, 4, final=final).values_N
        torch.testing.assert_close(before[:4][list(order)], after[:4], atol=1e-9, rtol=0)
        torch.testing.assert_close(before[4:], after[4:], atol=1e-9, rtol=0)


@given(REWARDS)
@SETTINGS
def test_a_group_does_not_see_its_neighbours_but_with_final_batch(rewards):
    table = torch.tensor(rewards, dtype=F64)
    alone = gdpo(table[:4], 4).values_N
    torch.testing.assert_close(gdpo(table, 4).values_N[:4], alone)
    torch.testing.assert_close(gdpo(table[:4], 4, final="batch").values_N, alone)


@given(REWARDS)
@SETTINGS
def test_final_advantages_of_a_group_have_mean_zero_and_deviation_one_or_are_zero(rewards):
    values = gdpo(torch.tensor(rewards, dtype=F64), 4).values_N.reshape(-1, 4)
    for group in values:
        assert abs(float(group.mean())) < 1e-9
        spread = float(group.std(correction=0))
        assert spread == pytest.approx(1, abs=1e-6) or spread == 0


@given(REWARDS)
@SETTINGS
def test_float32_agrees_with_float64(rewards):
    table = torch.tensor(rewards, dtype=F64)
    assume(gdpo(table, 4).live_N.any())
    single = gdpo(table.to(torch.float32), 4)
    assert single.values_N.dtype == torch.float32
    torch.testing.assert_close(single.values_N.to(F64), gdpo(table, 4).values_N, atol=1e-4, rtol=0)


@given(st.lists(st.floats(0, 1), min_size=8, max_size=8))
@SETTINGS
def test_leave_one_out_is_the_centred_reward_times_g_over_g_minus_one(rewards):
    values = torch.tensor(rewards, dtype=F64)
    centred = values.view(-1, 4) - values.view(-1, 4).mean(1, keepdim=True)
    torch.testing.assert_close(leave_one_out(values, 4).values_N, (centred * 4 / 3).reshape(-1))


@pytest.mark.parametrize(
    ("tokens", "score"),
    [(0, 0), (100, 0), (101, 0.01), (150, 0.5), (199, 0.99), (200, 1), (900, 1)],
)
def test_the_cot_score_rises_between_its_bounds(tokens, score):
    assert float(cot_score(torch.tensor(tokens))) == pytest.approx(score)


def test_a_line_of_rewards_knows_unscored_from_zero():
    row = reward_row(
        {"accuracy": 1.0, "effectiveness": None, "tool_rationality": 0.5, "length": 1.0},
        {"tool": 150},
        CotPenalty(),
    )
    found = dict(zip(COLUMNS, row, strict=True))
    assert math.isnan(found.pop("effectiveness"))
    assert math.isnan(found.pop("skill_selection"))
    assert found == {"tool_rationality": 0.5, "accuracy": 1.0, "cot_tool": 0.5, "cot_reply": 0.0}


def test_segments_get_advantages_of_their_own_dimensions():
    """Tool rewards differ, reply rewards do not; the reply's CoT does, with weight -0.1."""
    line = {"skill_selection": 1.0, "accuracy": 1.0, "effectiveness": 0.5}
    rows = [
        reward_row({**line, "tool_rationality": 1.0}, {"tool": 0, "reply": 150}, CotPenalty()),
        reward_row({**line, "tool_rationality": 0.0}, {"tool": 0, "reply": 0}, CotPenalty()),
    ]
    found = segment_advantages(torch.tensor(rows, dtype=F64), 2, CotPenalty(), final="none")
    close(found.values_NS, [[1, -0.1], [-1, 0.1]])
    off = segment_advantages(torch.tensor(rows, dtype=F64), 2, CotPenalty(weight=0.0))
    close(off.values_NS, [[1, 0], [-1, 0]])
    assert off.dropped() == {"tool": 0.0, "reply": 1.0}
    assert off.live_NS.tolist() == [[True, False], [True, False]]


def test_a_rollout_that_nobody_scored_has_no_advantage_for_its_short_reasoning():
    scored = [
        reward_row({"accuracy": 1.0, "effectiveness": 1.0}, {"reply": 300}, CotPenalty()),
        reward_row({"accuracy": 0.0, "effectiveness": 1.0}, {"reply": 10}, CotPenalty()),
        reward_row({}, {"reply": 0}, CotPenalty()),
    ]
    found = segment_advantages(torch.tensor(scored, dtype=F64), 3, CotPenalty())
    assert found.valid_NS.tolist() == [[False, True], [False, True], [False, False]]
    close(found.values_NS[:, 1], [1, -1, 0])
