"""The agent loop of verl 0.9: an episode is a rollout of our runtime in a room.

A rollout comes back as two outputs, tool and reply, that share tokens and have a mask each; the
stock `gspo` with `seq-mean-token-mean` then takes ratio and clip of each segment by itself. Rewards
travel in `extra_fields` and meet again in `verl_trainer`. Needs verl: loaded by its plug-in alone.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import msgspec
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput

from harness_cli.errors import HarnessError, UsageError
from harness_cli.training.playing import Place
from harness_cli.training.rewards import COLUMNS, reward_row
from harness_cli.training.rollouts import Rollout, rollout_of
from harness_cli.training.scale.grouped import FIELD, RowNote, penalty_of
from harness_cli.training.scale.room import Room
from harness_cli.training.scale.segment_rows import EngineRow, segment_rows, whole_rows
from harness_cli.training.scale.server_policy import NAME, Sampled, ServerPolicy, reader_of

AGENT: Final = "harness"
"""Name of the loop in verl's registry."""


@lru_cache(maxsize=4)
def _room(path: str) -> Room:
    return Room.open(Path(path).resolve())


class HarnessAgentLoop(AgentLoopBase):  # type: ignore[misc]
    """One instance runs one rollout."""

    def __init__(self, *args: Any, room: str = "room", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._room = _room(room)
        self._refuse_cut_distribution()

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> list[AgentLoopOutput]:
        """Run one task in the state of its group; `kwargs` are the fields of the prompt's row."""
        told = kwargs["extra_info"]
        group = f"{int(kwargs.get('global_steps', 0))}:{int(told['index'])}"
        place = Place(str(told["task"]), group, int(kwargs.get("session_id", 0)))
        policy = self._policy(sampling_params)
        played = await self._room.play(place, policy)
        made = rollout_of(played.trajectory, NAME, policy.decode)
        scores = await self._room.scores(played)
        card = self._room.card
        left_out = made.broken or (made.truncated and card.truncated == "drop")
        line = reward_row({} if left_out else scores, made.cot, penalty_of(card))
        first, last = policy.span
        note = RowNote(
            segment="",
            rewards=tuple(None if math.isnan(v) else v for v in line),
            state=played.trajectory.harness_id,
            request=played.request,
            policy=str(last) if card.one_version else "",
        )
        return self._outputs(made, note, first, last)

    def _policy(self, sampling_params: Mapping[str, Any]) -> ServerPolicy:
        card = self._room.card
        reader = reader_of(self.tokenizer, context=card.context)
        request_id = uuid4().hex  # one for the rollout: its turns go to the same server

        async def generate(prompt: list[int], most: int) -> Sampled:
            given = await self.server_manager.generate(
                request_id=request_id,
                prompt_ids=prompt,
                sampling_params={**sampling_params, "max_tokens": most},
            )
            steps = given.extra_fields
            first, last = steps.get("min_global_steps"), steps.get("max_global_steps")
            return Sampled(list(given.token_ids), given.log_probs, first or 0, last or 0)

        return ServerPolicy(reader, generate, one_version=card.one_version)

    def _outputs(
        self, made: Rollout, note: RowNote, first: int, last: int
    ) -> list[AgentLoopOutput]:
        whole = self._room.card.rows == "whole"
        # verl asks the teacher about the last output alone and drops its answer where others stand
        # before it, so a distilled rollout is one output: its newest context.
        rows = whole_rows(made)[-1:] if whole else segment_rows(made)
        rewards = [r for r in note.rewards[:-2] if r is not None]
        shown = {name: math.nan if r is None else r
                 for name, r in zip(COLUMNS, note.rewards, strict=True)}  # fmt: skip
        score = 0.0 if whole or not rewards else sum(rewards) / len(rewards)
        fields = {
            "reward_extra_info": shown,
            "min_global_steps": first,
            "max_global_steps": last,
            "turn_scores": [],
            "tool_rewards": [],
        }
        return [self._output(row, note, score, dict(fields)) for row in rows]

    def _output(
        self, row: EngineRow, note: RowNote, score: float, fields: dict[str, Any]
    ) -> AgentLoopOutput:
        own = msgspec.structs.replace(note, segment=row.segment, share=row.share)
        return AgentLoopOutput(
            prompt_ids=row.prompt_ids,
            response_ids=row.response_ids,
            response_mask=row.response_mask,
            response_logprobs=row.logprobs,
            # Set on each: verl copies the last one's score and its `reward_extra_info` to the
            # others, and scores by a rule of its own where there is none.
            reward_score=score,
            num_turns=2,
            metrics={},
            extra_fields={**fields, FIELD: msgspec.to_builtins(own)},
        )

    def _refuse_cut_distribution(self) -> None:
        """Ratios of a truncated distribution carry the mass that was kept: refuse to train them."""
        given = self.rollout_config
        if given.top_p != 1 or given.top_k not in (-1, None):
            raise UsageError(
                f"the sampler cuts its distribution off: top_p {given.top_p}, top_k {given.top_k}",
                hint="rollout.top_p=1.0 rollout.top_k=-1",
            )
        if not given.calculate_log_probs:
            raise HarnessError("rollout.calculate_log_probs is off: no behaviour log-probability")


class PromptLoop(AgentLoopBase):  # type: ignore[misc]
    """One answer to a prompt, for general distillation: no tools, no reward."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> AgentLoopOutput:
        """Sample one answer to `raw_prompt`."""
        prompt = await self.ct_build_initial_tokens(list(kwargs["raw_prompt"]))
        given = await self.server_manager.generate(
            request_id=uuid4().hex, prompt_ids=prompt, sampling_params=dict(sampling_params)
        )
        fields: dict[str, Any] = {
            "min_global_steps": given.extra_fields.get("min_global_steps") or 0,
            "max_global_steps": given.extra_fields.get("max_global_steps") or 0,
            "reward_extra_info": {},
            "turn_scores": [],
            "tool_rewards": [],
        }
        return AgentLoopOutput(
            prompt_ids=prompt,
            response_ids=list(given.token_ids),
            response_mask=[1] * len(given.token_ids),
            response_logprobs=given.log_probs,
            reward_score=0.0,
            num_turns=2,
            metrics={},
            extra_fields=fields,
        )
