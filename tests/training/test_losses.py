"""Losses: hand-computed values, float64, gradients, and what they must not depend on."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_cli.errors import UsageError
from harness_cli.training.losses import (
    Clip,
    decoupled_loss,
    distillation_loss,
    k3,
    kl_penalty,
    reverse_kl,
    segment_policy_loss,
    sft_loss,
)

F64 = torch.float64
WIDE = Clip(0.2, 0.2)
SETTINGS = settings(max_examples=40, deadline=None)


def tensor(*values):
    return torch.tensor(values, dtype=F64)


# One rollout: two tool tokens, a masked one, three reply tokens.
SEGMENTS = torch.tensor([[1, 1, 0, 2, 2, 2]])
OLD = tensor([-1.0, -2.0, -9.0, -1.0, -1.0, -1.0])
LOGP = tensor([-0.9, -1.9, -3.0, -1.4, -1.3, -1.2])


def test_gspo_by_hand():
    """Tool: ρ = e^0.1, A = 2, inside. Reply: ρ = e^-0.3 = 0.741 < 0.8, A = -1: held at 0.8."""
    found = segment_policy_loss(LOGP, OLD, SEGMENTS, tensor([2.0, -1.0]), clip=WIDE)
    wanted = -(2 * math.exp(0.1) - 1 * 0.8) / 2
    assert float(found.loss) == pytest.approx(wanted, abs=1e-12)
    torch.testing.assert_close(found.ratio_BS, tensor([math.exp(0.1), math.exp(-0.3)]))
    assert found.clipped_BS.tolist() == [[0.0, 1.0]]


def test_the_token_ratio_of_algorithm_1_by_hand():
    """Each token by itself: the reply's are e^-0.4, e^-0.3, e^-0.2, of which two are held."""
    found = segment_policy_loss(LOGP, OLD, SEGMENTS, tensor([2.0, -1.0]), clip=WIDE, ratio="token")
    reply = -(0.8 + 0.8 + math.exp(-0.2)) / 3
    assert float(found.loss) == pytest.approx(-(2 * math.exp(0.1) + reply) / 2, abs=1e-12)
    assert found.clipped_BS[0].tolist() == pytest.approx([0.0, 2 / 3])


def test_on_policy_both_ratios_have_the_same_gradient():
    """At ρ = 1 the gradient is A/|y| a token, whichever ratio: where they differ is off-policy."""
    grads = []
    for ratio in ("sequence", "token"):
        logp = OLD.clone().requires_grad_()
        segment_policy_loss(logp, OLD, SEGMENTS, tensor([2.0, -1.0]), ratio=ratio).loss.backward()
        grads.append(logp.grad)
    torch.testing.assert_close(grads[0], grads[1])
    torch.testing.assert_close(grads[0], tensor([-0.5, -0.5, 0, 1 / 6, 1 / 6, 1 / 6]))


def test_ratios_that_are_detached_copies_are_one_and_still_teach():
    logp = LOGP.clone().requires_grad_()
    found = segment_policy_loss(logp, logp.detach(), SEGMENTS, tensor([2.0, -1.0]))
    assert found.ratio_BS.tolist() == [[1.0, 1.0]]
    assert not found.clipped_BS.any()
    found.loss.backward()
    assert logp.grad.abs().sum() > 0


def test_a_clipped_segment_has_no_gradient():
    logp = LOGP.clone().requires_grad_()
    segment_policy_loss(logp, OLD, SEGMENTS, tensor([2.0, -1.0]), clip=WIDE).loss.backward()
    assert (logp.grad[0, 3:] == 0).all()
    assert (logp.grad[0, :2] != 0).all()


@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), -float("inf"), 80.0])
def test_masked_tokens_get_exactly_no_gradient_whatever_stands_there(rubbish):
    logp = LOGP.clone()
    logp[0, 2] = rubbish
    old = OLD.clone()
    old[0, 2] = -rubbish
    logp.requires_grad_()
    mask = SEGMENTS > 0
    one = torch.zeros(1, dtype=torch.long)
    losses = [
        segment_policy_loss(logp, old, SEGMENTS, tensor([2.0, -1.0])).loss,
        segment_policy_loss(logp, old, SEGMENTS, tensor([2.0, -1.0]), ratio="token").loss,
        decoupled_loss(logp, old, old, mask, torch.tensor([1.0], dtype=F64)),
        kl_penalty(logp, old, mask, one, 1),
        sft_loss(logp, mask),
    ]
    for loss in losses:
        (grad,) = torch.autograd.grad(loss, logp, retain_graph=True)
        assert torch.isfinite(loss)
        assert torch.isfinite(grad).all()
        assert float(grad[0, 2]) == 0.0


def test_two_segments_in_one_row_are_two_rows():
    """The same rollout as one row with both segments, and as two rows with one each."""
    whole = LOGP.clone().requires_grad_()
    loss = segment_policy_loss(whole, OLD, SEGMENTS, tensor([2.0, -1.0]), clip=WIDE).loss
    loss.backward()
    split = LOGP.repeat(2, 1).requires_grad_()
    alone = torch.tensor([[1, 1, 0, 0, 0, 0], [0, 0, 0, 2, 2, 2]])
    other = segment_policy_loss(
        split,
        OLD.repeat(2, 1),
        alone,
        tensor([2.0, -1.0]),
        rollout_R=torch.tensor([0, 0]),
        clip=WIDE,
    ).loss
    other.backward()
    assert loss.item() == other.item()
    torch.testing.assert_close(whole.grad[0], split.grad.sum(0), atol=0, rtol=0)


def test_a_segment_spread_over_forked_rows_has_one_ratio():
    """Three reply tokens in one row or over two rows: one mean over all three."""
    one = segment_policy_loss(LOGP, OLD, SEGMENTS, tensor([0.0, 1.0]), clip=WIDE)
    rows = torch.tensor([[1, 1, 0, 2, 0, 0], [0, 0, 0, 0, 2, 2]])
    two = segment_policy_loss(
        LOGP.repeat(2, 1),
        OLD.repeat(2, 1),
        rows,
        tensor([0.0, 1.0]),
        rollout_R=torch.tensor([0, 0]),
        clip=WIDE,
    )
    assert float(one.loss) == pytest.approx(float(two.loss), abs=1e-15)


def batch(seed, rollouts=6, width=9):
    """(logp, old, segment ids, advantages) of random rollouts."""
    made = torch.Generator().manual_seed(seed)
    logp = -torch.rand(rollouts, width, generator=made, dtype=F64) * 3
    old = logp + 0.3 * torch.randn(rollouts, width, generator=made, dtype=F64)
    segments = torch.randint(0, 3, (rollouts, width), generator=made)
    segments[:, 0], segments[:, 1] = 1, 2  # each segment has a token
    return logp, old, segments, torch.randn(rollouts, 2, generator=made, dtype=F64)


@given(st.integers(0, 1000), st.sampled_from(["sequence", "token"]))
@SETTINGS
def test_padding_and_the_order_of_rows_change_nothing(seed, ratio):
    logp, old, segments, advantages = batch(seed)
    before = segment_policy_loss(logp, old, segments, advantages, clip=WIDE, ratio=ratio)
    order = torch.randperm(6, generator=torch.Generator().manual_seed(seed))
    pad = torch.zeros(6, 4, dtype=F64)
    after = segment_policy_loss(
        torch.cat([logp, pad - 99], 1)[order],
        torch.cat([old, pad], 1)[order],
        torch.cat([segments, pad.long()], 1)[order],
        advantages[order],
        clip=WIDE,
        ratio=ratio,
    )
    torch.testing.assert_close(before.loss, after.loss)
    torch.testing.assert_close(before.ratio_BS[order], after.ratio_BS)


@given(st.integers(0, 1000), st.sampled_from(["sequence", "token"]))
@SETTINGS
def test_float32_agrees_with_float64_and_finite_differences_agree_with_both(seed, ratio):
    logp, old, segments, advantages = batch(seed, rollouts=2, width=5)
    wide = Clip(0.9, 9.0)

    def loss(at):
        return segment_policy_loss(at, old, segments, advantages, clip=wide, ratio=ratio).loss

    single = segment_policy_loss(
        logp.float(), old.float(), segments, advantages.float(), clip=wide, ratio=ratio
    )
    assert float(single.loss) == pytest.approx(float(loss(logp)), abs=1e-5)
    assert torch.autograd.gradcheck(loss, (logp.clone().requires_grad_(),))


def test_a_rollout_counts_once_however_long_it_is():
    """The trap of broadcast sequence losses: TRL's default weighs a sequence by its length."""
    short = torch.tensor([[2, 0, 0, 0, 0, 0, 0, 0]])
    long = torch.full((1, 8), 2)
    segments = torch.cat([short, long])
    logp = torch.zeros(2, 8, dtype=F64, requires_grad=True)
    advantages = tensor([0.0, 1.0]).repeat(2, 1)
    loss = segment_policy_loss(logp, torch.zeros(2, 8, dtype=F64), segments, advantages).loss
    loss.backward()
    by_rollout = logp.grad.sum(1)
    torch.testing.assert_close(by_rollout[0], by_rollout[1])


def test_the_denominators_differ_by_what_the_filter_dropped():
    logp, old, segments, advantages = batch(3)
    advantages[:3] = 0.0
    sampled = segment_policy_loss(logp, old, segments, advantages, clip=WIDE)
    kept = segment_policy_loss(logp, old, segments, advantages, clip=WIDE, denominator="kept")
    live = int(sampled.live_BS.sum())
    assert live == 6
    assert float(kept.loss) * live == pytest.approx(float(sampled.loss) * 12)


def test_micro_batches_add_up_to_the_batch():
    """`sampled`: the mean of equal parts; `kept`: each part divides by the whole batch's number."""
    logp, old, segments, advantages = batch(4)
    advantages[0] = advantages[4, 1] = 0.0
    parts = [slice(0, 3), slice(3, 6)]

    def loss(part, **how):
        return segment_policy_loss(
            logp[part], old[part], segments[part], advantages[part], clip=WIDE, **how
        ).loss

    everything = slice(0, 6)
    torch.testing.assert_close(sum(loss(p) for p in parts) / 2, loss(everything))
    whole = segment_policy_loss(logp, old, segments, advantages, clip=WIDE)
    kept = float(whole.live_BS.sum())
    torch.testing.assert_close(
        sum(loss(p, denominator="kept", kept=kept) for p in parts),
        loss(everything, denominator="kept"),
    )


def test_a_segment_without_tokens_or_advantage_is_out_of_the_sum():
    only_tool = torch.tensor([[1, 1, 0, 0, 0, 0]])
    found = segment_policy_loss(LOGP, OLD, only_tool, tensor([2.0, -1.0]), clip=WIDE)
    assert found.live_BS.tolist() == [[True, False]]
    assert float(found.loss) == pytest.approx(-math.exp(0.1))
    nothing = segment_policy_loss(LOGP, OLD, torch.zeros_like(SEGMENTS), tensor([2.0, -1.0]))
    assert float(nothing.loss) == 0.0


def verl_gspo(old, logp, advantages, mask, low, high):
    """verl 0.9.1 `compute_policy_loss_gspo` with `seq-mean-token-mean`, on one row a segment."""
    length = mask.sum(-1).clamp(min=1)
    sequence = ((logp - old) * mask).sum(-1) / length
    mixed = logp - logp.detach() + sequence.detach().unsqueeze(-1)
    ratio = mixed.clamp(max=10.0).exp()
    spread = advantages[:, None]
    worse = torch.maximum(-spread * ratio, -spread * ratio.clamp(1 - low, 1 + high))
    return ((worse * mask).sum(-1) / length).mean()


@pytest.mark.parametrize("seed", range(5))
def test_as_two_rows_verl_computes_the_same_loss_and_gradient(seed):
    logp, old, segments, advantages = batch(seed)
    ours = logp.clone().requires_grad_()
    loss = segment_policy_loss(ours, old, segments, advantages, clip=WIDE).loss
    loss.backward()
    theirs = logp.clone().requires_grad_()
    rows = torch.cat([theirs, theirs])
    mask = torch.cat([segments == 1, segments == 2]).to(F64)
    other = verl_gspo(
        torch.cat([old, old]), rows, torch.cat([advantages[:, 0], advantages[:, 1]]), mask, 0.2, 0.2
    )
    other.backward()
    torch.testing.assert_close(loss, other)
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_decoupled_by_hand():
    """Token 1: π_prox/π_behav = e^0.5, r = e^0.1; token 2: weight e^2 > 5, left out."""
    behaviour = tensor([-1.5, -3.0, 0.0])
    proximal = tensor([-1.0, -1.0, 0.0])
    logp = tensor([-0.9, -1.0, 0.0])
    mask = torch.tensor([[1, 1, 0]])
    found = decoupled_loss(logp, proximal, behaviour, mask, torch.tensor([2.0], dtype=F64))
    assert float(found) == pytest.approx(-math.exp(0.5) * math.exp(0.1) * 2 / 2)
    everything = decoupled_loss(
        logp, proximal, behaviour, mask, torch.tensor([2.0], dtype=F64), cap=None
    )
    assert float(everything) == pytest.approx(
        -(math.exp(0.5) * math.exp(0.1) + math.exp(2.0)) * 2 / 2
    )


def test_decoupled_gradient_at_the_proximal_policy():
    """-(π_prox/π_behav)·A/n, and none through the behaviour weight."""
    proximal = tensor([-1.0, -1.2])
    behaviour = tensor([-1.5, -1.0])
    logp = proximal.clone().requires_grad_()
    decoupled_loss(
        logp, proximal, behaviour, torch.ones(1, 2), torch.tensor([3.0], dtype=F64)
    ).backward()
    torch.testing.assert_close(logp.grad, -(proximal - behaviour).exp() * 3 / 2)


@given(st.floats(-5, 0), st.floats(-5, 0))
@SETTINGS
def test_k3_is_never_negative_and_zero_at_equality(a, b):
    one = torch.tensor([[a]], dtype=F64)
    assert float(k3(one, torch.tensor([[b]], dtype=F64))) >= 0
    assert float(k3(one, one)) == 0


def test_k3_has_the_kl_as_its_expectation():
    p = torch.softmax(torch.tensor([0.3, -1.0, 0.5], dtype=F64), 0)
    q = torch.softmax(torch.tensor([-0.2, 0.1, 0.4], dtype=F64), 0)
    expected = (p * k3(p.log()[None], q.log()[None])[0]).sum()
    assert float(expected) == pytest.approx(float((p * (p / q).log()).sum()), abs=1e-12)


def test_reverse_kl_by_hand_and_in_any_chunk():
    made = torch.Generator().manual_seed(0)
    student = torch.randn(7, 11, generator=made, dtype=F64)
    teacher = torch.randn(7, 11, generator=made, dtype=F64)
    p, q = student.softmax(-1), teacher.softmax(-1)
    wanted = (p * (p / q).log()).sum(-1)
    for chunk in (1, 3, 100):
        found = reverse_kl(student, teacher, chunk=chunk)
        torch.testing.assert_close(found.to(F64), wanted, atol=1e-6, rtol=0)


def test_the_gradient_of_the_divergence_is_p_times_its_excess():
    """d KL / d z = p (log p/q - KL), also through the chunks' recomputation."""
    made = torch.Generator().manual_seed(1)
    student = torch.randn(5, 6, generator=made).requires_grad_()
    teacher = torch.randn(5, 6, generator=made)
    reverse_kl(student, teacher, chunk=2).sum().backward()
    p, off = student.softmax(-1), student.log_softmax(-1) - teacher.log_softmax(-1)
    wanted = p * (off - (p * off).sum(-1, keepdim=True))
    torch.testing.assert_close(student.grad, wanted.detach(), atol=1e-6, rtol=1e-4)


def test_a_token_that_the_student_never_says_costs_nothing():
    student = torch.tensor([[0.0, 0.0, -torch.inf]], requires_grad=True)
    teacher = torch.tensor([[0.0, 0.0, -torch.inf]])
    found = reverse_kl(student, teacher)
    found.sum().backward()
    assert float(found) == 0.0
    assert torch.isfinite(student.grad).all()


def test_distillation_looks_at_the_students_own_tokens_alone():
    made = torch.Generator().manual_seed(2)
    student = torch.randn(2, 3, 5, generator=made).requires_grad_()
    teacher = torch.randn(2, 3, 5, generator=made)
    mask = torch.tensor([[0, 1, 1], [0, 0, 1]])
    loss = distillation_loss(student, teacher, mask)
    loss.backward()
    assert float(loss) == pytest.approx(
        float(reverse_kl(student[mask.bool()], teacher[mask.bool()]).mean())
    )
    assert (student.grad[~mask.bool()] == 0).all()
    assert float(distillation_loss(student, teacher, torch.zeros(2, 3))) == 0.0


def test_a_teacher_with_another_vocabulary_is_refused():
    with pytest.raises(UsageError, match="another vocabulary: 6 tokens for 5"):
        reverse_kl(torch.zeros(2, 5), torch.zeros(2, 6))


def test_the_sft_mean_is_over_tokens_with_loss_of_the_whole_batch():
    logp = tensor([-1.0, -2.0, -4.0])
    assert float(sft_loss(logp, torch.tensor([[1, 0, 1]]))) == pytest.approx(2.5)
    assert float(sft_loss(logp, torch.tensor([[1, 0, 1]]), tokens=10)) == pytest.approx(0.5)
    assert float(sft_loss(logp, torch.zeros(1, 3))) == 0.0


@pytest.mark.parametrize(("low", "high"), [(-0.1, 0.2), (1.0, 0.2), (0.2, -0.1)])
def test_a_clip_range_that_is_none_is_refused(low, high):
    with pytest.raises(UsageError, match="clip needs"):
        Clip(low, high)
