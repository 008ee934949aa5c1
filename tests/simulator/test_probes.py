"""The probe set: made anew it has the same bytes; good ones are good, each corruption is one."""

from collections import Counter
from pathlib import Path

from harness_cli.judges.rewards.dimension import DIMENSIONS
from harness_cli.judges.rewards.separation import read_probes
from harness_cli.records.trajectory import StopReason
from harness_cli.simulator.probes import SEED, write_probes
from harness_cli.simulator.spoiling import LOWERED, PROCESS

ROOT = Path(__file__).parents[2]
FILE = ROOT / "evalsets" / "reward_probes" / "probes.jsonl"
PROBES = read_probes(FILE)


def test_made_anew_the_set_has_the_bytes_that_are_committed(tmp_path):
    write_probes(ROOT, tmp_path, SEED)
    assert (tmp_path / "probes.jsonl").read_bytes() == FILE.read_bytes()


def test_good_ones_ended_well_and_no_hook_objected():
    good = [p for p in PROBES if p.corruption is None]
    assert len(good) == 24
    for probe in good:
        assert probe.trajectory.stop is StopReason.COMPLETED
        assert not any(step.hooks for step in probe.trajectory.steps)
        assert not probe.lowers


def test_every_dimension_is_lowered_by_enough_probes_and_every_kind_of_corruption_is_there():
    counts = Counter(name for p in PROBES for name in p.lowers)
    assert set(counts) == set(DIMENSIONS)
    assert min(counts.values()) >= 8
    kinds = {p.corruption for p in PROBES if p.corruption}
    assert kinds == {*LOWERED, *PROCESS, "unloaded_reply", "marked_up", "never_clean"}


def test_items_are_those_of_the_dev_split_and_no_prompt_is_kept():
    for probe in PROBES:
        assert probe.item.split == "dev"
        assert all(not step.messages for step in probe.trajectory.steps)
        assert not probe.trajectory.wall_s
