"""Run by verl's own interpreter (`test_verl_contract.py`): prints one JSON line a check.

python verl_contract.py configs FOLDER…     compose, validate, build the classes
python verl_contract.py advantage ROOM      our trainer's step on the real TransferQueue
python verl_contract.py rows PARQUET        our data set through verl's collator
python verl_contract.py loop FOLDER BASE    our agent loop on verl's base class
"""

import json
import os
import sys
from itertools import pairwise
from pathlib import Path

CALL = '<tool_call>{"name": "load_skill", "arguments": {"skill": "greet"}}</tool_call><|im_end|>'


def say(**told):
    print("CHECK " + json.dumps(told, ensure_ascii=False), flush=True)


def configs(folders):
    import verl
    from hydra import compose, initialize_config_dir
    from hydra.errors import ConfigCompositionException
    from omegaconf import OmegaConf
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config

    where = str(Path(verl.__file__).parent / "trainer" / "config")
    for folder in map(Path, folders):
        os.chdir(folder)
        lines = Path("overrides.txt").read_text().splitlines()
        sft = any(line.startswith("data.custom_cls.name=MaskedRows") for line in lines)
        name = "sft_trainer_engine" if sft else "ppo_trainer"
        with initialize_config_dir(where, version_base=None):
            cfg = compose(name, overrides=lines)
            try:
                compose(name, overrides=[*lines, "trainer.nnode=1"])
                refused = False
            except ConfigCompositionException:
                refused = True
        built = []
        if sft:
            keys = ("model", "engine", "optim")
        else:
            validate_config(
                config=cfg,
                use_reference_policy=need_reference_policy(cfg),
                use_critic=need_critic(cfg),
            )
            keys = (
                "actor_rollout_ref.actor",
                "actor_rollout_ref.rollout",
                "actor_rollout_ref.model",
                "algorithm",
                "distillation",
            )
        for key in keys:
            made = omega_conf_to_dataclass(OmegaConf.select(cfg, key))
            built.append(type(made).__name__)
        say(config=folder.name, composed=name, misspelt_refused=refused, built=built,
            critic=False if sft else need_critic(cfg))  # fmt: skip


def advantage(room):
    import ray
    import torch
    import transfer_queue as tq
    import verl  # noqa: F401  loads the plug-in
    from omegaconf import OmegaConf
    from tensordict import NonTensorStack, TensorDict
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    from harness_cli.training.scale.grouped import FIELD
    from harness_cli.training.scale.verl_plugin import TRAINERS, assert_registered

    assert_registered()
    os.chdir(Path(room).parent)
    say(registered=sorted(set(TRAINERS) & set(TRAINER_REGISTRY)))
    # Logical CPUs: the controller and each storage unit take one, so with two it waits for ever.
    ray.init(num_cpus=8, include_dashboard=False, log_to_driver=False)
    tq.init(OmegaConf.create({"backend": {"SimpleStorage": {"num_data_storage_units": 1}}}))
    cls = TRAINER_REGISTRY["harness_sync"]
    trainer = cls.__new__(cls)
    trainer.trainer_mode = "harness_sync"
    say(mode=trainer.trainer_mode, modes={n: TRAINER_REGISTRY[n].mode for n in TRAINERS})
    trainer.config = OmegaConf.create(
        {
            "actor_rollout_ref": {"rollout": {"n": 4}},
            "algorithm": {"use_kl_in_reward": False, "adv_estimator": "grpo", "gamma": 1.0,
                          "lam": 1.0, "norm_adv_by_std_in_grpo": True,
                          "filter_groups": {"enable": False}},
            "trainer": {"v1": {"trainer_mode": "harness_sync", "sync": {}, "sampler": {
                "custom_sampler": {"path": None, "name": None}, "max_off_policy_threshold": 8,
                "max_off_policy_strategy": "drop", "sampler_kwargs": {},
                "sync_refill_failed_groups": False}}},
            "data": {"train_batch_size": 2},
        }
    )  # fmt: skip
    buffer = trainer._build_replay_buffer()
    say(
        buffer=type(buffer).__name__,
        synchronous=isinstance(buffer, ReplayBuffer) and not isinstance(buffer, ReplayBufferAsync),
    )
    from harness_cli.records.reader import read_json
    from harness_cli.records.room import RoomCard

    trainer._card = read_json(Path("room", "room.json"), RoomCard)
    lines = {
        "a": [(1, 1, 1, 1, 0, 0), (1, 1, 0, 1, 0, 0), (1, 1, 1, 1, 0, 0), (1, 1, 0, 1, 0, 0)],
        "b": [(0, 1, 1, 1, 0, 0), (1, 1, 1, 1, 0, 0), (1, 1, 1, 1, 0, 0), (1, 1, 1, 1, 0.5, 0)],
    }
    rows = []
    for uid, sessions in lines.items():
        for session, rewards in enumerate(sessions):
            for index, (segment, length) in enumerate((("tool", 5), ("reply", 3))):
                rows.append((f"{uid}_{session}_{index}", uid, segment, length, rewards))
    rows.append(("padx_0_0", "padx", "tool", 1, None))
    keys = [row[0] for row in rows]
    fields = {
        "uid": NonTensorStack(*[row[1] for row in rows]),
        "response_mask": nested([mask_of(row) for row in rows], torch.int64),
        "rm_scores": nested([[0.0] * (row[3] - 1) + [0.5] for row in rows], torch.float32),
        "extra_fields": NonTensorStack(*[
            {FIELD: {"segment": row[2], "rewards": [float(v) for v in row[4] or [0] * 6]}}
            for row in rows
        ]),
    }  # fmt: skip
    tags = [{"status": "success", "is_padding": row[4] is None} for row in rows]
    tq.kv_batch_put(keys=keys, fields=TensorDict(fields, batch_size=len(rows)), tags=tags,
                    partition_id="train")  # fmt: skip
    from transfer_queue import KVBatchMeta

    batch = KVBatchMeta(keys=keys, tags=tags, partition_id="train", extra_info={})
    metrics = {}
    trainer._compute_advantage(batch, metrics)
    back = tq.kv_batch_get(keys=keys, partition_id="train", select_fields=["advantages"])
    values = {key: [round(v, 4) for v in row.tolist()]
              for key, row in zip(keys, back["advantages"].unbind(), strict=True)}  # fmt: skip
    say(advantages=values, metrics={k: v for k, v in metrics.items() if k.startswith("harness")})
    tq.close()
    ray.shutdown()


def loop(folder, base):
    """Our agent loop on verl's own base class, sampled by a real model of random weights."""
    import asyncio

    import torch
    from omegaconf import OmegaConf
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, DictConfigWrap
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict
    from verl.workers.rollout.replica import TokenOutput

    from harness_cli.training.scale.grouped import FIELD
    from harness_cli.training.scale.parquet import read_rows
    from harness_cli.training.scale.verl_loop import HarnessAgentLoop

    os.chdir(folder)
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForCausalLM.from_pretrained(base).eval()
    ends = set(tokenizer("<|im_end|>", add_special_tokens=False)["input_ids"])
    seen = []

    class Servers:
        """What verl's client gives: tokens and log-probabilities of a real model."""

        async def generate(self, request_id, *, prompt_ids, sampling_params):
            assert sampling_params["top_p"] == 1.0
            first = all(request_id != other for other, _, _ in seen)
            given, logprobs = list(prompt_ids), []
            with torch.inference_mode():
                if first:  # a call that random weights would never make, with its probabilities
                    given += tokenizer(CALL, add_special_tokens=False)["input_ids"]
                    table = model(torch.tensor([given])).logits[0].log_softmax(-1)
                    places = range(len(prompt_ids), len(given))
                    logprobs = [float(table[at - 1, given[at]]) for at in places]
                for _ in range(0) if first else range(min(sampling_params["max_tokens"], 24)):
                    logits = model(torch.tensor([given])).logits[0, -1].log_softmax(-1)
                    token = int(torch.multinomial(logits.exp(), 1))
                    given.append(token)
                    logprobs.append(float(logits[token]))
                    if token in ends:
                        break
            seen.append((request_id, list(prompt_ids), given))
            return TokenOutput(
                token_ids=given[len(prompt_ids) :],
                log_probs=logprobs,
                extra_fields={"min_global_steps": 3, "max_global_steps": 3},
            )

    rollout = {"top_p": 1.0, "top_k": -1, "calculate_log_probs": True, "prompt_length": 2048}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
    row = read_rows(Path("data", "train.parquet"))[0]
    torch.manual_seed(0)

    async def play(number):
        made = HarnessAgentLoop(
            trainer_config=DictConfigWrap(config),
            server_manager=Servers(),
            tokenizer=tokenizer,
            processor=None,
            dataset_cls=None,
            data_config=DictConfigWrap(config.data),
            hf_model_type="llama",
            room="room",
        )
        return await made.run(
            {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "logprobs": True},
            raw_prompt=row["prompt"], extra_info=row["extra_info"], global_steps=4,
            session_id=number, uid="u",
        )  # fmt: skip

    async def all_of_them():
        return [await play(number) for number in range(2)]

    groups = asyncio.run(all_of_them())
    for outputs in groups:
        assert all(isinstance(o, AgentLoopOutput) for o in outputs)
    notes = [o.extra_fields[FIELD] for outputs in groups for o in outputs]
    fields = [o.as_dict() for outputs in groups for o in outputs]
    table = list_of_dict_to_tensordict(fields)
    outputs = [o for outputs in groups for o in outputs]
    sampled = [
        t for o in outputs for t, m in zip(o.response_ids, o.response_mask, strict=True) if m
    ]
    said = [o.response_logprobs for o in outputs]
    say(
        rows=len(fields),
        keys=sorted(table.keys()),
        segments=[n["segment"] for n in notes],
        states=len({n["state"] for n in notes}),
        requests=len({n["request"] for n in notes}),
        policies=sorted({n["policy"] for n in notes}),
        prompts=len({tuple(o.prompt_ids) for o in outputs}),
        turns=len(seen),
        faithful=all(
            after[1][: len(before[2])] == before[2]
            for before, after in pairwise(seen)
            if before[0] == after[0]
        ),
        first_prompt_was_read=seen[0][1] == outputs[0].prompt_ids,
        said=[
            tokenizer.decode([t for t, m in zip(o.response_ids, o.response_mask, strict=True) if m])
            for o in outputs
            if o.extra_fields[FIELD]["segment"] == "tool"
        ],
        sampled=len(sampled),
        lengths=all(len(a) == len(o.response_ids) for a, o in zip(said, outputs, strict=True)),
        scores=[o.reward_score for o in outputs],
        versions=[o.extra_fields["max_global_steps"] for o in outputs],
        rewards=[n["rewards"] for n in notes],
    )


def mask_of(row):
    # the first token of every reply row is a tool result: masked
    return [0] + [1] * (row[3] - 1) if row[2] == "reply" else [1] * row[3]


def nested(lists, dtype):
    import torch

    return torch.nested.as_nested_tensor(
        [torch.tensor(x, dtype=dtype) for x in lists], layout=torch.jagged
    )


def rows(parquet):
    from omegaconf import OmegaConf
    from verl.utils.dataset.dataset_utils import DatasetPadMode, SFTTensorCollator
    from verl.utils.import_utils import load_extern_type

    kind = load_extern_type("pkg://harness_cli.training.scale.verl_rows", "MaskedRows")
    config = OmegaConf.create({"max_length": 4, "pad_mode": "no_padding"})
    data = kind([parquet], tokenizer=None, config=config, processor=None)
    made = SFTTensorCollator(DatasetPadMode.NO_PADDING)([data[0], data[1]])
    say(rows=[x.tolist() for x in made["input_ids"].unbind()],
        masks=[x.tolist() for x in made["loss_mask"].unbind()])  # fmt: skip


if __name__ == "__main__":
    given = sys.argv[2:]
    {"configs": lambda: configs(given), "advantage": lambda: advantage(*given),
     "rows": lambda: rows(*given), "loop": lambda: loop(*given)}[sys.argv[1]]()  # fmt: skip
