"""`python -m harness_cli.simulator.probes`: write the probe set of rewards anew.

Good trajectories come from the scripted oracle under the real loop and the shipped harness: they
load the skills an item expects, call its tools and say what those return, and no hook objects.
Each is corrupted in several ways that lower known rewards. Labels are BY CONSTRUCTION.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness_cli.harness.load import state_from_files
from harness_cli.models.scripted import ScriptedPolicy
from harness_cli.records.canonical import canonical_json, write_atomic
from harness_cli.records.chat import ChatReply, RawToolCall
from harness_cli.records.clocks import without_clocks
from harness_cli.records.harness import HarnessState
from harness_cli.records.item import Item
from harness_cli.records.probe import Probe
from harness_cli.records.trajectory import Trajectory
from harness_cli.runtime.agent import Agent
from harness_cli.runtime.loop import rollout
from harness_cli.simulator.calibration import draft_fault
from harness_cli.simulator.corruptions import KINDS, Draft
from harness_cli.simulator.live.replicas import replicas
from harness_cli.simulator.oracle import Oracle, read_templates
from harness_cli.simulator.scenarios.draws import generator
from harness_cli.simulator.scenarios.library import read_library
from harness_cli.simulator.spoiling import LOWERED, PROCESS, broken_rules, with_reply
from harness_cli.store.catalogue import read_catalogue
from harness_cli.store.tree import FILE, Entry

SEED = 20261130
NAME, ITEMS_OF = "reward_probes", "live_stream_qa"
PLAN = {
    "product-qa": 10,
    "chat": 3,
    "clarification": 2,
    "after-sales": 2,
    "promotion": 3,
    "presentation-order": 2,
    "faq": 2,
}
"""Items of each category."""
SCARCE = ("wrong_price", "wrong_link", "partial", "missed_comment")
MOST = 5
"""Corruptions of one item, those that are rarest so far first."""


class Maker:
    """Makes the probes of one harness and catalogue."""

    def __init__(self, oracle: Oracle, state: HarnessState, seed: int) -> None:
        self.oracle, self.state, self.seed = oracle, state, seed
        self._executors = replicas(state, oracle.world)

    async def probes(self, item: Item, counts: Counter[str]) -> list[Probe]:
        """The good one and its corruptions; none where the good one is not good."""
        draw = generator(NAME, self.seed, item.id)
        calls = await self.oracle.calls(item)
        units = self.oracle.units(item, calls)
        draft = Draft(
            self.oracle, item, units, [self.oracle.say(item, unit, draw) for unit in units]
        )
        if draft_fault(draft) or draft.silent:
            return []
        opening = _opening(item, [(c.name, c.arguments) for c in calls])
        good = await self._run(item, [opening, ChatReply(content=draft.reply())])
        if any(s.hooks for s in good.steps) or good.reply != draft.reply():
            return []
        made = [Probe(id=f"{item.id}/good", item=item, trajectory=good)]
        options = await self._options(draft, good, opening)
        chosen = sorted(options, key=lambda p: _urgency(str(p.corruption), counts))
        for probe in chosen[:MOST]:
            counts[str(probe.corruption)] += 1
            made.append(probe)
        return made

    async def _options(self, draft: Draft, good: Trajectory, opening: ChatReply) -> list[Probe]:
        item, found = draft.item, []

        def keep(kind: str, trajectory: Trajectory, lowers: Sequence[str], change: str) -> None:
            found.append(
                Probe(
                    id=f"{item.id}/{kind}",
                    trajectory=trajectory,
                    corruption=kind,
                    lowers=tuple(lowers),
                    change=change,
                )
            )

        for kind, corrupt in KINDS.items():
            made = corrupt(draft, generator(NAME, self.seed, item.id, kind))
            if made is not None:
                lowers = [
                    d for d in LOWERED[kind] if _lowered(d, made.accuracy, made.effectiveness)
                ]
                keep(kind, with_reply(good, made.reply), lowers, made.change)
        for kind, spoil in PROCESS.items():
            spoiled = spoil(draft, good, generator(NAME, self.seed, item.id, kind))
            if spoiled is not None:
                keep(kind, spoiled.trajectory, spoiled.lowers, spoiled.change)
        for kind, (script, change) in broken_rules(draft, opening).items():
            trajectory = await self._run(item, script)
            if any(s.hooks for s in trajectory.steps):
                keep(kind, trajectory, ("rule_compliance",), change)
        return found

    async def _run(self, item: Item, script: Sequence[ChatReply]) -> Trajectory:
        agent = Agent(
            state=self.state,
            policy=ScriptedPolicy(script, policy_id="oracle"),
            executors=self._executors,
            world=self.oracle.world,
        )
        made = await rollout(item.request, agent, request_id=item.id, item_id=item.id)
        return shortened(made)


def _urgency(kind: str, counts: Counter[str]) -> tuple[bool, int, str]:
    """What few items admit comes first, then what there is least of."""
    return kind not in SCARCE, counts[kind], kind


def _lowered(dimension: str, accuracy: int, effectiveness: float) -> bool:
    grades = {"accuracy": float(accuracy), "effectiveness": effectiveness}
    return grades.get(dimension, 0.0) < 1


def _opening(item: Item, calls: Sequence[tuple[str, object]]) -> ChatReply:
    """Load the skills and make the calls, in one answer."""
    asked: list[tuple[str, object]] = [("load_skill", {"skill": s}) for s in item.expect.skills]
    return ChatReply(
        tool_calls=tuple(
            RawToolCall(id=f"c{n}", name=name, arguments=json.dumps(given, ensure_ascii=False))
            for n, (name, given) in enumerate([*asked, *calls])
        ),
        finish_reason="tool_calls",
    )


def shortened(trajectory: Trajectory) -> Trajectory:
    """Without clocks, without the messages that were shown and the skills' texts: judges read
    neither."""
    plain = without_clocks(msgspec.to_builtins(trajectory))
    plain.pop("versions")
    plain.pop("harness_id")  # what hooks said stands in the steps; the set outlives an edit
    made = msgspec.convert(plain, Trajectory)
    steps = tuple(
        msgspec.structs.replace(
            step,
            messages=(),
            calls=tuple(
                msgspec.structs.replace(
                    c,
                    result=msgspec.structs.replace(
                        c.result,
                        structured=None,
                        content="" if c.executor == "builtin" else c.result.content,
                    ),
                )
                for c in step.calls
            ),
        )
        for step in made.steps
    )
    return msgspec.structs.replace(made, steps=steps)


async def make_probes(
    oracle: Oracle, state: HarnessState, items: Sequence[Item], seed: int
) -> list[Probe]:
    """The probes of a plan: items of each category by lot, until there are enough good ones."""
    maker, found = Maker(oracle, state, seed), []
    counts: Counter[str] = Counter()
    for category, wanted in PLAN.items():
        pool = [i for i in items if i.category == category]
        generator(NAME, seed, category).shuffle(pool)
        pool = priced_first(pool, wanted // 2)
        taken = 0
        for item in pool:
            made = await maker.probes(item, counts) if taken < wanted else []
            taken += bool(made)
            found += made
    return found


def priced_first(pool: Sequence[Item], wanted: int) -> list[Item]:
    """So many items that ask for money come first: few of a category do, and a wrong amount is the
    corruption that matters most."""
    asks = [i for i in pool if {"price", "list_price", "discount"} & set(i.expect.answers)]
    first = asks[:wanted]
    return [*first, *(i for i in pool if i not in first)]


def write_probes(root: Path, out: Path, seed: int) -> dict[str, int]:
    """Write `probes.jsonl`; returns probes by corruption."""
    evalsets, harness = root / "evalsets", root / "harness_repo"
    oracle = Oracle(
        read_catalogue(evalsets / "catalogue"),
        {s.id: s for s in read_library(evalsets / "scenarios").scenarios},
        read_templates(evalsets / "judge_calibration" / "templates.yaml"),
    )
    files = {
        p.relative_to(harness).as_posix(): Entry(FILE, p.read_bytes())
        for p in sorted(harness.rglob("*"))
        if p.is_file() and p.relative_to(harness).parts[0] not in ("judges", "failure_classes")
    }
    read = msgspec.json.Decoder(Item).decode
    lines = (evalsets / ITEMS_OF / "items.jsonl").read_bytes().splitlines()
    items = [i for i in map(read, lines) if i.split == "dev"]
    probes = asyncio.run(make_probes(oracle, state_from_files(files), items, seed))
    plain = msgspec.json.Encoder(order="sorted")
    text = b"".join(canonical_json(msgspec.json.decode(plain.encode(p))) + b"\n" for p in probes)
    write_atomic(out / "probes.jsonl", text)
    return dict(Counter(p.corruption or "good" for p in probes))


def main(argv: list[str] | None = None) -> int:
    """Parse, write, say what was written."""
    parser = argparse.ArgumentParser(
        prog="python -m harness_cli.simulator.probes", description=__doc__
    )
    parser.add_argument("--seed", type=int, default=SEED, help="default: of the shipped set")
    parser.add_argument("--root", type=Path, default=Path(), help="the project")
    parser.add_argument("--out", type=Path, help="write elsewhere than into the set's folder")
    chosen = parser.parse_args(argv)
    out = chosen.out or chosen.root / "evalsets" / NAME
    out.mkdir(parents=True, exist_ok=True)
    for kind, count in write_probes(chosen.root, out, chosen.seed).items():
        sys.stdout.write(f"{kind}: {count}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
