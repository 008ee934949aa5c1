"""Checkpoints by name: registered whole or not at all, found again, named by what they hold."""

import os
import shutil

import pytest

from harness_cli.errors import BadFile, UnknownName, UsageError
from harness_cli.records.checkpoint import BaseModel, Checkpoint, ServedAs
from harness_cli.store.checkpoints import (
    checkpoint_policy,
    checkpoints,
    checkpoints_folder,
    digest_of,
    find_checkpoint,
    read_checkpoint,
    register,
)


def record(name="student", **more):
    return Checkpoint(name=name, made_by="sft", digest="", files={}, **more)


def fill(folder, weights=b"weights"):
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)


def test_a_checkpoint_is_registered_with_the_digests_of_what_was_written(tmp_path):
    made = register(tmp_path, record(), fill)
    folder = find_checkpoint(tmp_path, "student")
    assert made == read_checkpoint(folder)
    assert made.files.keys() == {"config.json", "tokenizer.json", "model.safetensors"}
    assert made.digest == digest_of(folder)
    assert [c.name for c in checkpoints(tmp_path)] == ["student"]


def test_what_fails_to_be_written_leaves_the_checkpoint_before(tmp_path):
    first = register(tmp_path, record(), fill)

    def fails(folder):
        fill(folder, b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        register(tmp_path, record(), fails)
    assert read_checkpoint(find_checkpoint(tmp_path, "student")) == first
    assert sorted(p.name for p in checkpoints_folder(tmp_path).iterdir()) == ["student"]


def test_a_folder_without_weights_is_never_registered(tmp_path):
    with pytest.raises(BadFile, match="no checkpoint folder"):
        register(tmp_path, record(), lambda folder: (folder / "config.json").write_text("{}"))
    with pytest.raises(UnknownName):
        find_checkpoint(tmp_path, "student")


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path):
    first = register(tmp_path, record(), fill)
    place = checkpoints_folder(tmp_path)
    (place / "student").rename(place / ".student.old")
    assert read_checkpoint(find_checkpoint(tmp_path, "student")) == first
    again = register(tmp_path, record(), lambda folder: fill(folder, b"new"))
    assert again.digest != first.digest
    assert sorted(p.name for p in place.iterdir()) == ["student"]


def test_a_list_shows_what_can_be_used_and_brings_back_what_a_kill_left_without_a_name(tmp_path):
    first = register(tmp_path, record(), fill)
    place = checkpoints_folder(tmp_path)
    shutil.copytree(place / "student", place / ".student.4194305.part")
    assert checkpoints(tmp_path) == [first]
    (place / "student").rename(place / ".student.old")
    assert checkpoints(tmp_path) == [first]
    assert (place / "student").is_dir()


def test_what_killed_processes_left_half_registered_goes_with_the_next_one(tmp_path):
    """Each is as large as a checkpoint; what a living process writes stays."""
    place = checkpoints_folder(tmp_path)
    living = f".student.{os.getppid()}.part"
    for name in (".student.4194305.part", ".student.b.4194305.part", living):
        (place / name).mkdir(parents=True)
    register(tmp_path, record(), fill)
    left = {".student.b.4194305.part", living, "student"}
    assert {p.name for p in place.iterdir()} == left


@pytest.mark.parametrize("reference", ["/", "", ".", "..", "a/../b"])
def test_a_reference_that_is_no_name_is_a_folder_or_refused(tmp_path, reference):
    with pytest.raises(UsageError, match="checkpoint"):
        find_checkpoint(tmp_path, reference)


def test_a_folder_of_the_project_is_found_by_its_path(tmp_path):
    (tmp_path / "models/base").mkdir(parents=True)
    fill(tmp_path / "models/base")
    assert find_checkpoint(tmp_path, "models/base") == tmp_path / "models/base"
    assert find_checkpoint(tmp_path, "file://models/base") == tmp_path / "models/base"
    assert read_checkpoint(tmp_path / "models/base") is None
    with pytest.raises(UnknownName, match="no checkpoint named `models/other`"):
        find_checkpoint(tmp_path, "models/other")


def test_a_registered_checkpoint_is_sampled_as_its_record_says(tmp_path):
    register(tmp_path, record(served=ServedAs(max_tokens=48, temperature=0.0)), fill)
    config = checkpoint_policy(tmp_path, "student")
    assert (config.kind, config.max_tokens, config.temperature) == ("checkpoint", 48, 0.0)
    assert config.checkpoint.sha256 == read_checkpoint(find_checkpoint(tmp_path, "student")).digest


def fill_adapter(folder):
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(b"deltas")


def test_a_registered_adapter_is_put_onto_the_base_it_was_trained_from(tmp_path):
    base = register(tmp_path, record("base"), fill)
    named = BaseModel(name="base", digest=base.digest)
    register(tmp_path, record("lora", format="adapter", base=named), fill_adapter)
    config = checkpoint_policy(tmp_path, "lora")
    assert (config.checkpoint.uri, config.adapter) == ("base", "lora")
    assert config.checkpoint.sha256 == base.digest
    with pytest.raises(UsageError, match="`lora` is an adapter"):
        checkpoint_policy(tmp_path, "lora+mtp")


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "a" * 101, "naïve"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(UsageError, match="cannot name a checkpoint"):
        register(tmp_path, record(name), fill)
