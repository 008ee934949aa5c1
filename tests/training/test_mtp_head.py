"""The head as served, its loss, and the reference decoder, on random weights."""

import random

import numpy as np
import pytest
import torch
import transformers
from tiny_qwen import VOCABULARY, config, head_for, policy, save

from harness_cli.errors import BadFile
from harness_cli.models.checkpoint_drafting import Sampling, Speculator
from harness_cli.models.checkpoint_head import DraftHead, as_tensors, fused, load_head
from harness_cli.models.drafting_rule import Thresholds, distribution, shaped
from harness_cli.models.mtp_check import check_head
from harness_cli.models.mtp_stitch import stitch
from harness_cli.models.weights_write import write_safetensors
from harness_cli.training.mtp.fit import module_digest
from harness_cli.training.mtp.loss import Batch, depth_mask, mtp_loss, terms_of, unrolled
from harness_cli.training.mtp.rollouts import Rollout, batch_of, hidden_states

PROMPT = [3, 1, 4, 1, 5, 9, 2, 6]


@pytest.fixture(scope="module")
def model():
    torch.set_num_threads(1)
    return policy()


@pytest.fixture(scope="module")
def head(model):
    return head_for(model)


def decoded(model, head, sampling, count=40, drafts=None):
    one = Speculator(model, head, PROMPT, sampling, random.Random(5))
    if drafts is not None:
        one._draft = lambda: drafts(one)
    while len(one.ids) < count:
        one.step()
    return one.ids[:count], one


def test_plain_decoding_is_what_transformers_generates(model):
    said, one = decoded(model, None, Sampling())
    made = model.generate(torch.tensor([PROMPT]), max_new_tokens=32, do_sample=False)
    assert said == made[0].tolist()
    assert one.counts.accept_length == 1.0


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_greedy_drafting_says_what_plain_decoding_says(model, head, steps):
    plain, _ = decoded(model, None, Sampling())
    drafted, one = decoded(model, head, Sampling(steps=steps))
    assert drafted == plain
    assert one.counts.drafted == steps * one.counts.passes


@pytest.mark.parametrize("right", [0.0, 0.5, 0.8, 1.0])
def test_greedy_drafting_is_plain_decoding_whatever_is_drafted(model, head, right):
    """Drafts that are right now and then: every length of acceptance, and states put back."""
    plain, _ = decoded(model, None, Sampling(), 64)
    draws = random.Random(1)

    def drafts(one):
        at = len(one.ids)
        wrong = [(plain[at + k] + 1) % VOCABULARY if at + k < 64 else 0 for k in range(3)]
        true = [plain[at + k] if at + k < 64 else 0 for k in range(3)]
        return [t if draws.random() < right else w for t, w in zip(true, wrong, strict=True)]

    drafted, one = decoded(model, head, Sampling(steps=3), 60, drafts)
    assert drafted == plain[:60]
    assert set(one.counts.at) <= {0, 1, 2, 3}
    assert one.counts.accept_length == pytest.approx(1 + np.mean(one.counts.at))
    if right in (0.0, 1.0):
        # The last pass may look beyond the tokens that are known here.
        assert set(one.counts.at[:-2]) == {0 if right == 0 else 3}


def test_training_rows_are_the_rows_a_server_drafts(model, head):
    """Depth k of row i is what decoding does: a prefix of true states, then the recursion."""
    torch.manual_seed(0)
    ids = torch.randint(0, VOCABULARY, (1, 12))
    with torch.inference_mode():
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
        embedded = model.get_input_embeddings()(ids)
        states = unrolled(head, embedded, hidden, 3)
        for i in range(9):
            cache = head.new_cache()
            at = torch.arange(i + 1)[None]
            state = head(embedded[:, 1 : i + 2], hidden[:, : i + 1], at, cache=cache)[:, -1:]
            torch.testing.assert_close(states[0][:, i : i + 1], state, atol=1e-5, rtol=1e-4)
            for k in (1, 2):
                token = embedded[:, i + 1 + k : i + 2 + k]
                state = head(token, state, torch.tensor([[i + k]]), cache=cache)
                torch.testing.assert_close(states[k][:, i : i + 1], state, atol=1e-5, rtol=1e-4)


def test_no_row_sees_what_comes_after_it(model, head):
    ids = torch.arange(1, 13)[None]
    other = ids.clone()
    other[0, 8] = 40
    with torch.inference_mode():
        found = []
        for one in (ids, other):
            hidden = model.model(input_ids=one, use_cache=False).last_hidden_state
            found.append(unrolled(head, model.get_input_embeddings()(one), hidden, 3))
    for depth, (a, b) in enumerate(zip(*found, strict=True)):
        same = (a - b).abs().amax(-1)[0] < 1e-6
        # Row i takes tokens up to i + 1 + depth in.
        assert same[: 8 - 1 - depth].all()
        assert not same[8 - 1 - depth]


@pytest.mark.parametrize(("prompt", "sampled", "depths"), [(1, 6, 3), (3, 5, 2), (4, 2, 3)])
def test_the_loss_is_equation_6_term_by_term(model, head, prompt, sampled, depths):
    torch.manual_seed(prompt)
    ids = torch.randint(0, VOCABULARY, (prompt + sampled,)).tolist()
    batch = batch_of([Rollout(prompt=ids[:prompt], sampled=ids[prompt:])])
    hidden = hidden_states(model, batch)
    found = mtp_loss(head, model, hidden, batch, depths)
    states = unrolled(head, model.get_input_embeddings()(batch.ids), hidden, depths)
    total, terms = 0.0, 0
    for k in range(depths):
        for t in range(1, sampled - 1 - k + 1):
            row, target = prompt + t - 2, prompt + t - 1 + 1 + k
            logp = model.lm_head(states[k][0, row]).log_softmax(-1).detach()
            total -= float(logp[ids[target]])
            terms += 1
    assert terms == sum(max(0, sampled - 1 - k) for k in range(depths)) == found.terms
    assert float(found.total.detach()) == pytest.approx(total / terms, rel=1e-4)


def test_padding_and_company_change_no_term(model, head):
    torch.manual_seed(3)
    rows = [
        Rollout(prompt=drawn[:p], sampled=drawn[p : p + s])
        for p, s in ((2, 7), (5, 3), (1, 12))
        for drawn in [torch.randint(0, VOCABULARY, (20,)).tolist()]
    ]

    def loss(some):
        batch = batch_of(some)
        return mtp_loss(head, model, hidden_states(model, batch), batch, 3)

    alone = [loss([row]) for row in rows]
    together = loss(rows)
    whole = sum(float(one.total.detach()) * one.terms for one in alone)
    assert together.terms == sum(one.terms for one in alone)
    assert float(together.total.detach()) * together.terms == pytest.approx(whole, rel=1e-4)


def test_the_mask_of_a_depth_shows_true_rows_and_the_draft_under_way():
    mask = depth_mask(5, 2)
    assert mask.shape == (2, 4 + 3 + 2)
    assert mask[1].int().tolist() == [1, 1, 0, 0, 0, 1, 0, 0, 1]
    batch = Batch(torch.zeros(1, 6, dtype=torch.long), torch.tensor([2]), torch.tensor([5]))
    assert [terms_of(batch, k)[0].int().tolist() for k in range(3)] == [
        [0, 1, 1, 0],
        [0, 1, 0],
        [0, 0],
    ]


def test_a_head_learns_while_the_policy_stays_as_it_is(model, head):
    torch.manual_seed(0)
    own = DraftHead(model.config)
    own.load_state_dict(head.state_dict())
    batch = batch_of([Rollout(prompt=[1], sampled=[2, 3, 4] * 8)])
    before = module_digest(model)
    optimiser = torch.optim.AdamW(own.parameters(), lr=5e-3)
    losses = []
    for _ in range(12):
        found = mtp_loss(own, model, hidden_states(model, batch), batch, 3)
        optimiser.zero_grad()
        found.total.backward()
        optimiser.step()
        losses.append(float(found.total.detach()))
    assert losses[-1] < 0.7 * losses[0]
    assert module_digest(model) == before
    assert all(p.grad is not None for p in own.parameters())


@pytest.mark.parametrize(
    ("temperature", "top_p", "thresholds"),
    [(1.0, 1.0, Thresholds()), (0.7, 0.9, Thresholds()), (1.0, 0.95, Thresholds(0.5, 0.7))],
)
@pytest.mark.parametrize("rank", [0, 1, 5])
def test_what_the_decoder_samples_has_the_law_of_the_rule(
    model, head, temperature, top_p, thresholds, rank
):
    """At exact thresholds that law is the policy's own; below, the draft is favoured as told."""
    one = Speculator(
        model, head, PROMPT, Sampling(temperature, top_p, thresholds), random.Random(7)
    )
    with torch.inference_mode():
        logits = model(torch.tensor([PROMPT])).logits[0, -1].float()
    draft = int(logits.argsort(descending=True)[rank])
    p = shaped(logits.double().numpy(), temperature, top_p)
    counts = np.zeros(VOCABULARY)
    for _ in range(4000):
        counts[one._decided(logits, draft)] += 1
    law = distribution(p, draft, thresholds)
    if not thresholds.lossy:
        np.testing.assert_allclose(law, p, atol=1e-12)
    bound = 4.5 * np.sqrt(law * (1 - law) / 4000) + 1e-9
    assert (np.abs(counts / 4000 - law) <= bound).all()
    assert len(one.logprobs) == 4000


def test_transformers_drops_the_head_and_stitch_puts_it_back(tmp_path, model, head):
    base = save(model, tmp_path / "base", head)
    assert check_head(base).ok
    loaded = transformers.AutoModelForCausalLM.from_pretrained(base)
    loaded.save_pretrained(tmp_path / "merged")
    found = check_head(tmp_path / "merged")
    assert [f.trouble for f in found.errors] == ["absent"]
    assert stitch(base, tmp_path / "merged").origin == "native"
    assert check_head(tmp_path / "merged").findings == ()
    back = load_head(tmp_path / "merged", loaded.config)
    assert module_digest(back) == module_digest(head)


def test_a_bf16_head_comes_back_as_bf16_and_drafts(tmp_path, model, head):
    part = tmp_path / "h.safetensors"
    write_safetensors(part, as_tensors(head, "BF16"))
    back = load_head(part, model.config)
    for name, tensor in back.state_dict().items():
        torch.testing.assert_close(tensor, head.state_dict()[name].bfloat16().float())


def test_experts_one_by_one_are_those_in_one_tensor():
    sizes = {"num_experts": 4, "moe_intermediate_size": 8, "shared_expert_intermediate_size": 8}
    told = {
        k: v for k, v in config().to_dict().items() if k not in ("model_type", "intermediate_size")
    }
    made = transformers.Qwen3_5MoeTextConfig(**(told | sizes | {"num_experts_per_tok": 2}))
    head = DraftHead(made)
    head.initialise(0)
    state = dict(head.state_dict())
    at = "layers.0.mlp.experts."
    both, down = state.pop(at + "gate_up_proj"), state.pop(at + "down_proj")
    for n in range(4):
        state[f"{at}{n}.gate_proj.weight"], state[f"{at}{n}.up_proj.weight"] = both[n].chunk(2)
        state[f"{at}{n}.down_proj.weight"] = down[n]
    again = fused(state)
    assert torch.equal(again[at + "gate_up_proj"], both)
    assert torch.equal(again[at + "down_proj"], down)


def test_a_head_of_another_size_is_refused(tmp_path, model, head):
    part = tmp_path / "h.safetensors"
    write_safetensors(part, as_tensors(head, "F32"))
    with pytest.raises(BadFile, match="does not fit"):
        load_head(part, config(hidden_size=64))
    with pytest.raises(BadFile, match="is not built here"):
        DraftHead(transformers.LlamaConfig())
