"""JSON Schemas of every file kind, made from the records: `python -m harness_cli.records.schemas`.

They serve editors and other programs; this package itself decodes through the records. Keys that
`metadata` and the like leave open stay open here as well.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from harness_cli.records.augmentation import AugmentationMap, DrawnStates, Recipe
from harness_cli.records.bench import BenchRun
from harness_cli.records.blind import Annotation, BlindKey, BlindSheet
from harness_cli.records.calibration import Calibration, CandidateLine
from harness_cli.records.canonical import write_json
from harness_cli.records.catalogue import Catalogue
from harness_cli.records.checkpoint import Checkpoint
from harness_cli.records.cluster import Cluster
from harness_cli.records.config import ProjectConfig
from harness_cli.records.diagnosis import Diagnosis, FailureClass, Proposal
from harness_cli.records.episode import EpisodeRecord
from harness_cli.records.gates import GatesFile
from harness_cli.records.harness import Hook, McpFile, McpLock, Pipeline, Replies, Tool
from harness_cli.records.item import EvalsetHeader, Item
from harness_cli.records.manifest import Channel, EvidenceLine, Manifest
from harness_cli.records.mtp import HeadProvenance, MtpComparison, MtpTraining
from harness_cli.records.noise import Noise
from harness_cli.records.probe import Probe
from harness_cli.records.rl_job import RlTraining, RolloutLine
from harness_cli.records.room import RoomCard
from harness_cli.records.run import Report, RunConfig
from harness_cli.records.serve_job import Desired, Live, ServeJob
from harness_cli.records.served import Served
from harness_cli.records.study import ArmScore, ArmTime, Study
from harness_cli.records.training import (
    DataCard,
    LeftOut,
    PreferenceRow,
    RlTask,
    SftJob,
    SftRow,
    TokenisedRow,
)
from harness_cli.records.training_job import OpdTraining, SftTraining, TrainingState
from harness_cli.records.trajectory import Trajectory
from harness_cli.records.verdict import ItemResult, Verdict

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BASE = "https://harness-evolution.dev/schemas"


class SkillFrontmatter(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"allowed_tools": "allowed-tools"},
):
    """The frontmatter of SKILL.md (Agent Skills specification)."""

    name: Annotated[str, Meta(pattern="^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
    description: Annotated[str, Meta(min_length=1, max_length=1024)]
    license: str | None = None
    compatibility: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    metadata: dict[str, str] = {}
    allowed_tools: str = ""


FILES: dict[str, Any] = {
    "augment": Recipe,
    "augmentation-map": AugmentationMap,
    "calibration": Calibration,
    "checkpoint": Checkpoint,
    "candidate-line": CandidateLine,
    "bench": BenchRun,
    "blind-annotation": Annotation,
    "blind-key": BlindKey,
    "blind-sheet": BlindSheet,
    "catalogue": Catalogue,
    "channel": Channel,
    "cluster": Cluster,
    "data-card": DataCard,
    "data-left-out": LeftOut,
    "diagnosis": Diagnosis,
    "drawn-states": DrawnStates,
    "episode": EpisodeRecord,
    "evalset": EvalsetHeader,
    "evidence-line": EvidenceLine,
    "failure-class": FailureClass,
    "gates": GatesFile,
    "harness": ProjectConfig,
    "hook": Hook,
    "item": Item,
    "item-result": ItemResult,
    "manifest": Manifest,
    "mcp": McpFile,
    "mcp.lock": McpLock,
    "mtp-arms": MtpComparison,
    "mtp-job": MtpTraining,
    "mtp-provenance": HeadProvenance,
    "noise": Noise,
    "opd-job": OpdTraining,
    "pipeline": Pipeline,
    "probe": Probe,
    "preference-row": PreferenceRow,
    "proposal": Proposal,
    "replies": Replies,
    "report": Report,
    "rl-job": RlTraining,
    "rl-rollout": RolloutLine,
    "rl-task": RlTask,
    "room": RoomCard,
    "run": RunConfig,
    "sft-job": SftJob,
    "sft-row": SftRow,
    "sft-training-job": SftTraining,
    "serve": ServeJob,
    "serve-desired": Desired,
    "serve-live": Live,
    "served": Served,
    "skill-frontmatter": SkillFrontmatter,
    "study": Study,
    "study-score": ArmScore,
    "study-time": ArmTime,
    "tokenised-row": TokenisedRow,
    "tool": Tool,
    "training-state": TrainingState,
    "trajectory": Trajectory,
    "verdict": Verdict,
}
"""Name of the schema file → the record of one file, line or frontmatter of that kind."""


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one file kind."""
    made = msgspec.json.schema(FILES[name])
    return {"$schema": DIALECT, "$id": f"{BASE}/{name}.json", **made}


def write_schemas(folder: Path) -> list[Path]:
    """One file for each kind; files of kinds that are no more are removed."""
    wanted = {folder / f"{name}.json": name for name in FILES}
    for path, name in wanted.items():
        write_json(path, schema_of(name))
    for path in folder.glob("*.json"):
        if path not in wanted:
            path.unlink()
    return sorted(wanted)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m harness_cli.records.schemas FOLDER")
    write_schemas(Path(sys.argv[1]))
