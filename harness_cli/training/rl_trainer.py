"""HSA-RL on TRL's GRPOTrainer: our rollouts, our advantages, our loss; everything else is TRL's.

The hooks are those that TRL leaves to subclasses: `rollout_func` plays rollouts by the runtime,
`_calculate_rewards` gathers the rewards of all processes, `_generate_and_score_completions` lays
rows of tokens and advantages by segment into the batch, `_compute_loss` is the loss of `losses.py`.
Optimiser, accumulation, processes, adapters and states stay as they are.
"""

import time
from collections.abc import Sequence
from typing import Any, Final

import torch
from accelerate.utils import gather_object
from torch import Tensor
from trl import GRPOTrainer

from harness_cli.errors import HarnessError, UsageError
from harness_cli.training.batching import Batch, Flat, flat, padded, unflat
from harness_cli.training.collecting import Collected, line_of, write_lines
from harness_cli.training.losses import PolicyLoss, kl_penalty, segment_policy_loss
from harness_cli.training.playing import Place
from harness_cli.training.rewards import COLUMNS, SEGMENTS, SegmentAdvantages, segment_advantages
from harness_cli.training.rl_iteration import (
    SCORED,
    TABLE,
    Hat,
    column_of,
    fingerprint,
    shared_of,
)
from harness_cli.training.task_order import TaskOrder

GAP: Final = 0.5
"""Mean difference of log-probabilities between sampler and trainer at which a job ends: more than
arithmetic of another precision makes, less than other weights do in the long run."""


class HatTrainer(GRPOTrainer):  # type: ignore[misc]
    """GRPO with two segments a rollout."""

    def __init__(self, hat: Hat, **given: Any) -> None:
        self.hat = hat
        self._scoring = False
        weights = [1.0] * len(SCORED) + [-hat.job.penalty.weight] * len(SEGMENTS)
        given["args"].reward_weights = weights
        super().__init__(
            reward_funcs=[column_of(name) for name in COLUMNS],
            rollout_func=self._roll,
            **given,
        )

    def _get_train_sampler(self, dataset: Any = None) -> TaskOrder:
        """TRL's order of tasks, but that it leaves out none and goes on where a job does."""
        repeats = self.num_iterations * self.args.steps_per_generation
        every = max(1, repeats // self.args.gradient_accumulation_steps)
        return TaskOrder(
            len(self.train_dataset if dataset is None else dataset),
            each=self.args.generation_batch_size // self.num_generations,
            copies=self.num_generations,
            repeats=repeats,
            seed=self.args.seed,
            done=lambda: int(self.state.global_step) // every,
        )

    def _roll(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:  # noqa: ARG002
        """TRL's `rollout_func`: this process's part of the iteration's rollouts."""
        hat, step = self.hat, int(self.state.global_step)
        began = time.perf_counter()
        hat.version = f"step-{step}"
        model = self.accelerator.unwrap_model(self.model)
        hat.sampler.swap(model, version=hat.version, digest=fingerprint(model))
        hat.collector.clock.own += time.perf_counter() - began
        first = self.accelerator.process_index * len(prompts)
        places = [
            Place(task, f"{step}:{task}", (first + at) % hat.job.rollouts)
            for at, task in enumerate(prompts)
        ]
        hat.drawn = hat.collector.collect(places)
        self._refuse_mixed()
        return {**self._for_trl(hat.drawn), TABLE: hat.rows()}

    def _for_trl(self, drawn: Sequence[Collected]) -> dict[str, Any]:
        """The first row of each rollout, for what TRL itself counts."""
        pad = self._tokenizer.pad_token_id
        prompts, completions, logprobs, masks = [], [], [], []
        for one in drawn:
            row = one.rollout.rows[0] if one.rollout.rows else None
            start = len(one.rollout.prompt)
            prompts.append(row.input_ids[:start] if row else [pad])
            completions.append((row.input_ids[start:] if row else []) or [pad])
            logprobs.append((row.logprobs[start:] if row else []) or [0.0])
            masks.append([int(s > 0) for s in (row.segment_ids[start:] if row else [])] or [0])
        return {
            "prompt_ids": prompts,
            "completion_ids": completions,
            "logprobs": logprobs,
            "env_mask": masks,
        }

    def _refuse_mixed(self) -> None:
        """The same check over all processes: a group may be spread over several."""
        seen: dict[str, Any] = {}
        for group, shared in gather_object([shared_of(one) for one in self.hat.drawn]):
            if seen.setdefault(group, shared) != shared:
                raise UsageError(f"a mixed group: `{group}` differs between processes")

    def _calculate_rewards(self, *given: Any, **more: Any) -> Tensor:
        """TRL's rewards of all processes, kept for our advantages."""
        table = super()._calculate_rewards(*given, **more)
        self.hat.table_NC = table.detach()
        return table

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> Batch:
        """Rollouts, rewards and advantages of an iteration, as rows of tokens."""
        self._scoring = True
        try:
            super()._generate_and_score_completions(inputs)
        finally:
            self._scoring = False
        began = time.perf_counter()
        hat, device = self.hat, self.accelerator.device
        found = self._advantages()
        first = self.accelerator.process_index * len(hat.drawn)
        own = found.values_NS[first : first + len(hat.drawn)]
        batch = padded([c.rollout for c in hat.drawn], self._tokenizer.pad_token_id)
        batch["advantages"] = own.float()
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        batch["kept"] = self._kept(batch)
        self._write(own)
        hat.collector.clock.own += time.perf_counter() - began
        with torch.no_grad():
            if self._off_policy:
                batch["row_old"] = self._of_all_rows(self.model, batch)
            if hat.job.kl:
                batch["row_reference"] = self._reference(batch)
        self._measure(found, batch)
        return batch

    def _advantages(self) -> SegmentAdvantages:
        hat = self.hat
        assert hat.table_NC is not None
        if torch.isnan(hat.table_NC[:, : -len(SEGMENTS)]).all():
            reasons = sorted({why for c in hat.drawn if (why := hat.unscored(c))})
            raise HarnessError(
                f"step {self.state.global_step}: no rollout was scored: "
                + ("; ".join(reasons[:3]) or "no reason was given"),
                hint="the last state and checkpoint are untouched",
            )
        job = hat.job
        return segment_advantages(
            hat.table_NC.double().cpu(),
            job.rollouts,
            hat.penalty,
            final=job.final,
            std=job.std,
            floor=job.spread,
        )

    def _kept(self, batch: Batch) -> Tensor:
        """What one micro-batch divides by under `denominator: kept`: over all processes, a step's
        share of the segments that have tokens and an advantage."""
        segments = batch["row_segments"]
        there = torch.stack([(segments == n + 1).any(-1).any(-1) for n in range(len(SEGMENTS))], -1)
        live = (there & (batch["advantages"] != 0)).sum()
        everywhere = self.accelerator.reduce(live.float(), reduction="sum")
        share = self.args.gradient_accumulation_steps / self.args.steps_per_generation
        return everywhere * share / self.accelerator.num_processes

    @property
    def _off_policy(self) -> bool:
        """Rollouts outlive an update, so that old log-probabilities are needed (as TRL has it)."""
        every = self.args.steps_per_generation * self.num_iterations
        return bool(self.args.gradient_accumulation_steps % every)

    def _get_per_token_logps_and_entropies(self, model: Any, ids: Tensor, *given: Any, **more: Any):  # type: ignore[no-untyped-def]
        """TRL's forward; while it scores a generation its own rows are not looked at."""
        if self._scoring:
            keep = given[1] if len(given) > 1 else more["logits_to_keep"]
            return torch.zeros(ids.shape[0], keep, device=ids.device), None, None
        return super()._get_per_token_logps_and_entropies(model, ids, *given, **more)

    def _of_rows(self, model: Any, rows: Flat, **more: Any) -> tuple[Tensor, Tensor | None, Any]:
        """Log-probabilities of the kept tokens of rows: (N, keep)."""
        return self._get_per_token_logps_and_entropies(  # type: ignore[no-any-return]
            model, rows.ids, rows.mask, rows.keep, **more
        )

    def _of_all_rows(self, model: Any, batch: Batch) -> Tensor:
        """Log-probabilities of a whole generation: (B, R, W)."""
        rows = flat(batch)
        size = self.args.per_device_train_batch_size
        logp, _, _ = self._of_rows(model, rows, batch_size=size)
        return unflat(logp, rows, batch["row_mask"])

    def _reference(self, batch: Batch) -> Tensor:
        if self.hat.reference is not None:
            return self._of_all_rows(self.hat.reference, batch)
        with self.accelerator.unwrap_model(self.model).disable_adapter():
            return self._of_all_rows(self.model, batch)

    def _compute_loss(self, model: Any, inputs: Batch) -> Tensor:
        """The objective of TR Eq. 4 over a micro-batch of rollouts."""
        rows, job = flat(inputs), self.hat.job
        logp, entropies, aux = self._of_rows(
            model, rows, compute_entropy=True, compute_aux_loss=self.aux_loss_enabled
        )
        old = rows.cut(inputs["row_old"]) if "row_old" in inputs else logp.detach()
        advantages = inputs["advantages"]
        # Equal parts average to the whole; with `kept` the divisor is the whole step's already.
        parts = float(self.current_gradient_accumulation_steps)
        found = segment_policy_loss(
            logp,
            old,
            rows.kept,
            advantages,
            rollout_R=rows.owner_N,
            clip=self.hat.clip,
            ratio=job.ratio,
            denominator=job.denominator,
            kept=float(inputs["kept"]),
        )
        loss = found.loss if job.denominator == "kept" else found.loss / parts
        mask = rows.kept > 0
        if job.kl:
            reference = rows.cut(inputs["row_reference"])
            kl = kl_penalty(logp, reference, mask, rows.owner_N, len(advantages))
            loss = loss + job.kl * kl / parts
            self._log_value("kl", float(kl.detach()))
        if aux is not None:
            loss = loss + self.router_aux_loss_coef * aux / parts
        self._watch(found, logp, entropies, rows.cut(inputs["row_behaviour"]), mask)
        return loss

    def _watch(
        self, found: PolicyLoss, logp: Tensor, entropies: Tensor, behaviour: Tensor, mask: Tensor
    ) -> None:
        """What a micro-batch shows; raises `HarnessError` for a sampler with other weights."""
        count = mask.sum().clamp(min=1)
        entropy = torch.where(mask, entropies.detach(), 0.0).sum() / count
        self._log_value("entropy", float(entropy))
        for place, segment in enumerate(SEGMENTS):
            live = found.live_BS[:, place]
            if live.any():
                self._log_value(f"ratio/{segment}", float(found.ratio_BS[live, place].mean()))
                self._log_value(f"clipped/{segment}", float(found.clipped_BS[live, place].mean()))
        every = self.args.steps_per_generation * self.num_iterations
        if self._step % every >= self.args.gradient_accumulation_steps:
            return  # an update lies between: a difference is what it should be
        gap = float(torch.where(mask, (logp.detach() - behaviour).abs(), 0.0).sum() / count)
        self._log_value("logp_gap", gap)
        if not gap < GAP:
            raise HarnessError(
                f"step {self.state.global_step}: sampler and trainer differ by {gap:.3g} in the "
                "mean log-probability of a token",
                hint="the sampler has other weights, temperature or template than the trainer",
            )

    def _log_value(self, name: str, value: float) -> None:
        self._metrics["train"][name].append(value)

    def _measure(self, found: SegmentAdvantages, batch: Batch) -> None:
        """What an iteration shows: lengths, dropped shares, where its seconds went."""
        hat = self.hat
        clock = hat.collector.clock
        for name, each in hat.measured().items():
            local = torch.tensor([float(v) for v in each], device=self.accelerator.device)
            self._log_value(name, float(self.accelerator.gather(local).mean()))
        for name, share in found.dropped().items():
            self._log_value(f"dropped/{name}", share)
        assert hat.table_NC is not None
        scores = hat.table_NC[:, [COLUMNS.index(f"cot_{s}") for s in SEGMENTS]]
        self._log_value("cot/q", float(torch.nanmean(scores)))
        for name in ("generation", "own", "judge"):
            self._log_value(f"seconds/{name}", getattr(clock, name))
            setattr(clock, name, 0.0)
        self._log_value("width", float(batch["row_ids"].shape[-1]))

    def _write(self, own_BS: Tensor) -> None:
        """Write down the rollouts of all processes."""
        hat, step = self.hat, int(self.state.global_step)
        lines = [
            line_of(
                one,
                step=step,
                version=hat.version,
                advantages=dict(zip(SEGMENTS, values, strict=True)),
            )
            for one, values in zip(hat.drawn, own_BS.tolist(), strict=True)
        ]
        everywhere = gather_object(lines)
        if self.accelerator.is_main_process:
            write_lines(hat.folder, everywhere)
