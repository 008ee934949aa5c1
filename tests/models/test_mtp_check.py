import json
import subprocess
import sys

import numpy as np
import pytest

from harness_cli.errors import BadFile, UsageError
from harness_cli.models.mtp_check import PROVENANCE, check_head
from harness_cli.models.mtp_stitch import stitch
from harness_cli.models.weights import read_weights
from harness_cli.models.weights_write import Made, made, write_safetensors
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.store.checkpoints import (
    checkpoint_policy,
    find_checkpoint,
    read_checkpoint,
    register,
)
from harness_cli.store.checkpoints import digest_of as checkpoint_digest
from tests.models.tiny_head import CONFIG, HIDDEN, MOE, bytes_of, head, policy, save, values

VISION = {"model_type": "qwen3_5", "text_config": CONFIG, "vision_config": {}}


def without(*names):
    return {k: v for k, v in head().items() if k not in names}


def with_(name, tensor):
    return {**head(), name: tensor}


def nan(name):
    shape = head()[name].shape
    data = np.ones(shape, np.float32)
    data.flat[3] = np.nan
    return with_(name, made(data))


F8 = Made("F8_E4M3", (HIDDEN, 2 * HIDDEN), b"\1" * 512)
BOTH = head(MOE) | {"mtp.layers.0.mlp.experts.0.up_proj.weight": values((8, 16), 1)}
EACH = {k: v for k, v in head(MOE, experts="each").items() if ".3.down" not in k}


def packed():
    kept = without("mtp.fc.weight")
    return {
        **kept,
        "mtp.fc.qweight": Made("I32", (HIDDEN, 4), b"\0" * HIDDEN * 16),
        "mtp.fc.scales": values((HIDDEN,), 1),
    }


@pytest.mark.parametrize(
    ("config", "made_head", "trouble", "level"),
    [
        (CONFIG, {}, "absent", "error"),
        (CONFIG, without("mtp.norm.weight"), "missing", "error"),
        (CONFIG, with_("mtp.fc.weight", values((HIDDEN, HIDDEN), 3)), "shape", "error"),
        (CONFIG, nan("mtp.fc.weight"), "non_finite", "error"),
        (CONFIG, with_("mtp.fc.weight", made(np.zeros((16, 32), np.float32))), "zero", "error"),
        (CONFIG, packed(), "quantised", "error"),
        (CONFIG, with_("mtp.fc.weight", F8), "quantised", "error"),
        (CONFIG, {f"model.{k}": v for k, v in head().items()}, "misnamed", "error"),
        (CONFIG, with_("mtp.extra.weight", values((2,), 3)), "misnamed", "warning"),
        (CONFIG, with_("mtp.norm.weight", values((HIDDEN,), 3, "F32")), "mixed_types", "warning"),
        ({**CONFIG, "mtp_num_hidden_layers": None}, head(), "config", "warning"),
        (MOE, BOTH, "experts", "error"),
        (MOE, EACH, "missing", "error"),
    ],
)  # fmt: skip
def test_every_trouble_is_found_by_name(tmp_path, config, made_head, trouble, level):
    report = check_head(save(tmp_path / "c", {**policy(), **made_head}, config))
    assert (trouble, level) in {(f.trouble, f.level) for f in report.findings}
    assert report.ok == (level == "warning")
    assert all(f.fix for f in report.findings)


@pytest.mark.parametrize(
    ("config", "experts", "kind", "shards"),
    [
        (CONFIG, "fused", "none", 1),
        (VISION, "fused", "none", 3),
        (MOE, "fused", "fused", 2),
        (MOE, "each", "per-expert", 1),
    ],
)
def test_a_sound_head_has_no_finding(tmp_path, config, experts, kind, shards):
    sizes = config.get("text_config", config)
    tensors = {**policy(), **head(sizes, experts=experts)}
    report = check_head(save(tmp_path / "c", tensors, config, shards), steps=3)
    assert (report.findings, report.experts, report.family) == ((), kind, "qwen")


def deepseek():
    config = {"model_type": "deepseek_v3", "hidden_size": HIDDEN, "num_hidden_layers": 2}
    block = {"self_attn.o_proj.weight": (16, 8), "input_layernorm.weight": (16,)}
    own = {"enorm.weight": (16,), "hnorm.weight": (16,), "eh_proj.weight": (16, 32)}
    tail = {"shared_head.norm.weight": (16,), "shared_head.head.weight": (64, 16)}
    made_ = {f"model.layers.1.{n}": values(s, 1) for n, s in block.items()}
    made_ |= {f"model.layers.2.{n}": values(s, 2) for n, s in {**block, **own, **tail}.items()}
    return {**config, "num_nextn_predict_layers": 1}, made_


def test_names_of_deepseek_are_known(tmp_path):
    config, tensors = deepseek()
    report = check_head(save(tmp_path / "c", tensors, config))
    assert (report.findings, report.family, report.tensors) == ((), "deepseek", 7)
    del tensors["model.layers.2.eh_proj.weight"], tensors["model.layers.2.self_attn.o_proj.weight"]
    report = check_head(save(tmp_path / "d", tensors, config))
    assert report.errors[0].tensors == (
        "model.layers.2.eh_proj.weight",
        "model.layers.2.self_attn.o_proj.weight",
    )


def test_a_head_that_the_index_forgot_is_found(tmp_path):
    folder = save(tmp_path / "c", policy(), shards=2)
    write_safetensors(folder / "head.safetensors", head())
    assert {f.trouble for f in check_head(folder).errors} == {"index", "absent"}
    stitch(folder / "head.safetensors", folder)
    assert check_head(folder).ok


@pytest.mark.parametrize("shards", [1, 3])
def test_a_stitched_head_is_the_same_bytes_and_its_origin_is_known(tmp_path, shards):
    base = save(tmp_path / "base", {**policy(), **head()}, shards=2)
    lost = save(tmp_path / "lost", policy(1), {**CONFIG, "mtp_num_hidden_layers": None}, shards)
    made_ = stitch(base, lost)
    report = check_head(lost)
    assert made_.origin == "transplanted"
    assert made_.trained_for == made_.source_digest != made_.policy_digest
    assert [f.trouble for f in report.findings] == ["stale"]
    assert report.ok
    found = read_weights(lost)
    assert bytes_of(found.tensors) == {k: v.bytes_ for k, v in {**policy(1), **head()}.items()}
    assert found.total_size in (None, sum(t.size for t in found.tensors.values()))
    assert json.loads((lost / "config.json").read_text())["mtp_num_hidden_layers"] == 1


def test_a_registered_checkpoint_can_be_named_once_its_head_is_back(tmp_path):
    (tmp_path / "harness.yaml").write_text("schema: 1\n")
    base = save(tmp_path / "base", {**policy(), **head()})
    lost = save(tmp_path / "lost", policy())

    def fill(part):
        for path in lost.iterdir():
            (part / path.name).write_bytes(path.read_bytes())

    record = Checkpoint(name="hat", made_by="rl", digest="", files={})
    before = register(tmp_path, record, fill)
    words = [sys.executable, "-m", "harness_cli.main", "mtp", "stitch", str(base), "hat"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "its digest is another now" in done.stderr
    folder = find_checkpoint(tmp_path, "hat")
    after = read_checkpoint(folder)
    assert after.digest == checkpoint_policy(tmp_path, "hat").checkpoint.sha256
    assert after.digest == checkpoint_digest(folder) != before.digest
    assert (after.name, after.made_by, after.created) == ("hat", "rl", before.created)


def test_a_head_goes_stale_when_the_policy_moves_on(tmp_path):
    base = save(tmp_path / "base", {**policy(), **head()})
    assert stitch(base, base).origin == "native"
    assert check_head(base).findings == ()
    save(base, {**policy(1), **head()})
    assert [f.trouble for f in check_head(base).errors] == ["stale"]
    save(base, {**policy(), **head(seed=8)})
    assert [f.trouble for f in check_head(base).findings] == ["provenance"]


def test_another_head_is_replaced_only_when_told(tmp_path):
    base = save(tmp_path / "base", {**policy(), **head()})
    other = save(tmp_path / "other", {**policy(), **head(seed=9)}, shards=2)
    with pytest.raises(UsageError, match="another one"):
        stitch(base, other)
    before = read_weights(other)
    stitch(base, other, replace=True)
    assert check_head(other).findings == ()
    assert len(before.files) <= len(list(other.glob("*.safetensors")))
    assert bytes_of(read_weights(other).tensors)["mtp.fc.weight"] == head()["mtp.fc.weight"].bytes_


def test_a_float32_head_is_written_as_the_policy_is(tmp_path):
    bare = tmp_path / "bare.safetensors"
    write_safetensors(bare, {k.removeprefix("mtp."): v for k, v in head(dtype="F32").items()})
    folder = save(tmp_path / "c", policy())
    stitch(bare, folder)
    assert check_head(folder).dtypes == ("BF16",)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (policy(), "no draft head"),
        ({**policy(), **without("mtp.norm.weight")}, "does not fit"),
        ({**policy(), **nan("mtp.fc.weight")}, "does not fit"),
    ],
)
def test_no_head_is_put_in_that_would_not_draft(tmp_path, source, says):
    lost = save(tmp_path / "lost", policy())
    before = (lost / "model.safetensors").read_bytes()
    with pytest.raises(BadFile, match=says):
        stitch(save(tmp_path / "base", source), lost)
    assert (lost / "model.safetensors").read_bytes() == before
    assert not (lost / PROVENANCE).exists()


def test_a_provenance_that_cannot_be_read_is_said(tmp_path):
    folder = save(tmp_path / "c", {**policy(), **head()})
    (folder / PROVENANCE).write_text("{")
    assert [f.trouble for f in check_head(folder).findings] == ["provenance"]
