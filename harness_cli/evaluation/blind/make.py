"""From two runs to a sheet that shows no names, and a key that is sealed by its digest."""

import secrets
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness_cli.errors import BadFile, UsageError
from harness_cli.evaluation.blind.draw import Place, draw, lay_out
from harness_cli.evaluation.blind.showing import request_of, trace_of
from harness_cli.evaluation.evalsets import load_evalset
from harness_cli.records.blind import (
    BlindKey,
    BlindPair,
    BlindReply,
    BlindSheet,
    KeyEntry,
    KeySystem,
)
from harness_cli.records.canonical import digest, sha256, write_atomic
from harness_cli.records.reader import parse_json, read_json
from harness_cli.records.run import RunConfig
from harness_cli.records.verdict import ItemResult
from harness_cli.store.project import Project
from harness_cli.store.runs import RunFolder

SHEET = "sheet.json"
PAIRS = 100
"""TR §5.6 draws 100 requests."""
REVIEW = 0.1


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to make of two runs."""

    pairs: int | None = None
    """None: 100, or as many as there are."""
    seed: int = 0
    review: float = REVIEW
    with_trace: bool = False
    reason: str | None = None
    title: str = ""


def make(
    project: Project, baseline: RunFolder, candidate: RunFolder, wanted: Wanted
) -> tuple[BlindSheet, BlindKey, bytes]:
    """The sheet, the key, and the key's bytes as they were sealed.

    Raises `UsageError` where the runs are not of the same items, or hold too few in common.
    """
    configs = (baseline.config(), candidate.config())
    _refuse_unlike(*configs)
    if not 0 <= wanted.review <= 1:
        raise UsageError(f"--review {wanted.review:g} is no share", hint="0.1 shows a tenth again")
    replies = (_replies(baseline), _replies(candidate))
    strata, left_out = _strata(*replies)
    total = sum(len(ids) for ids in strata.values())
    if total == 0:
        raise UsageError("the two runs have no item that both answered")
    drawn = draw(strata, wanted.pairs or min(PAIRS, total), wanted.seed)
    secret = secrets.token_hex(16)
    different = {i for i in drawn if replies[0][i].reply.strip() != replies[1][i].reply.strip()}
    places = lay_out(drawn, secret, review=wanted.review, repeatable=different)
    pairs = _pairs(project, (baseline, candidate), places, replies, wanted)
    name = f"{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(3)}"
    key = BlindKey(
        id=name,
        secret=secret,
        baseline=_system(configs[0]),
        candidate=_system(configs[1]),
        entries=tuple(
            KeyEntry(pair=p.pair, item_id=p.item_id, a=p.a, repeats=p.repeats) for p in places
        ),
        pairs_sha256=digest(pairs),
        left_out=left_out,
    )
    sealed = msgspec.json.format(msgspec.json.encode(key), indent=1) + b"\n"
    sheet = BlindSheet(
        id=name,
        title=wanted.title,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        evalset=configs[0].evalset,
        seed=wanted.seed,
        drawn=len(drawn),
        strata=dict(sorted(Counter(drawn.values()).items())),
        pairs=pairs,
        key_sha256=sha256(sealed),
    )
    return sheet, key, sealed


def key_path(project: Project, sheet_id: str) -> Path:
    """Where a key lies unless it was put elsewhere: with the runs, out of git and of the sheet."""
    return project.runs.parent / "blind" / f"{sheet_id}.key.json"


def write(folder: Path, sheet: BlindSheet, key_file: Path, sealed: bytes) -> None:
    """Sheet and key, each whole; the key readable by its owner alone.

    Raises `UsageError` where one of them would overwrite another test or lie beside the other.
    """
    if key_file.parent.resolve() == folder.resolve():
        raise UsageError("the key would lie beside the sheet", hint="give it another folder")
    for path in (folder / SHEET, key_file):
        if path.exists():
            raise UsageError(f"`{path}` is there already", hint="name another folder with -o")
    write_atomic(key_file, sealed)
    key_file.chmod(0o600)
    write_atomic(folder / SHEET, msgspec.json.format(msgspec.json.encode(sheet), indent=1) + b"\n")


def read_sheet(folder: Path) -> BlindSheet:
    """The sheet of a blind test. Raises `BadFile` for a folder that has none."""
    path = folder / SHEET
    if not path.is_file():
        raise BadFile(
            f"no `{SHEET}` in `{folder}`", hint="`harness blind make BASELINE CANDIDATE` makes one"
        )
    sheet = read_json(path, BlindSheet, name=f"{folder.name}/{SHEET}")
    if sheet.schema != 1:
        raise BadFile(f"{path}: schema {sheet.schema} is not known", hint="this is 1")
    return sheet


def read_key(path: Path, sheet: BlindSheet) -> BlindKey:
    """The key of a sheet, after both seals were checked.

    Raises `BadFile` for a key of another test, a key that was changed after the sheet was made,
    and a sheet whose pairs are not those that were drawn.
    """
    if not path.is_file():
        raise BadFile(f"no key `{path}`", hint="--key FILE names it; whoever made the test has it")
    data = path.read_bytes()
    key = parse_json(data, BlindKey, name=path.name)
    if key.id != sheet.id:
        raise BadFile(f"`{path.name}` is the key of `{key.id}`, not of `{sheet.id}`")
    if sha256(data) != sheet.key_sha256:
        raise BadFile(
            f"`{path.name}` is not the key that was sealed with the sheet",
            hint="bring back the one `harness blind make` wrote; this test proves nothing without",
        )
    if digest(sheet.pairs) != key.pairs_sha256:
        raise BadFile(
            f"the pairs of `{SHEET}` are not those that were drawn",
            hint="bring back the sheet that `harness blind make` wrote",
        )
    return key


def _refuse_unlike(a: RunConfig, b: RunConfig) -> None:
    if a.id == b.id:
        raise UsageError(f"`{a.id}` would stand on both sides")
    if (a.evalset.name, a.evalset.split, a.evalset.digest) != (
        b.evalset.name, b.evalset.split, b.evalset.digest,
    ):  # fmt: skip
        raise UsageError(
            f"runs `{a.id}` and `{b.id}` are not of the same items",
            hint="evaluate both on one evalset and split",
        )


def _replies(run: RunFolder) -> dict[str, ItemResult]:
    """Item id → its first rollout."""
    return {result.item_id: result for result in run.results() if result.repeat == 0}


def _strata(
    a: Mapping[str, ItemResult], b: Mapping[str, ItemResult]
) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Category → items that both runs answered, and why others are left out."""
    strata: dict[str, list[str]] = {}
    left_out: Counter[str] = Counter()
    for item in sorted(a.keys() | b.keys()):
        if item not in a or item not in b:
            left_out["in one run only"] += 1
        elif "errored" in (a[item].state, b[item].state):
            left_out["errored"] += 1
        else:
            strata.setdefault(a[item].category, []).append(item)
    return strata, dict(left_out)


def _pairs(
    project: Project,
    runs: tuple[RunFolder, RunFolder],
    places: list[Place],
    replies: tuple[Mapping[str, ItemResult], Mapping[str, ItemResult]],
    wanted: Wanted,
) -> tuple[BlindPair, ...]:
    bound = runs[0].config().evalset
    evalset = load_evalset(project, bound.name, split=bound.split, reason=wanted.reason)
    if evalset.digest != bound.digest:
        raise UsageError(
            f"the items of `{bound.name}` changed since the runs were made",
            hint="bring them back, or evaluate again",
        )
    needed = {place.item_id for place in places}
    shown = {i.id: request_of(i, evalset.world) for i in evalset.items if i.id in needed}
    traces = [trace_of(run, needed) if wanted.with_trace else {} for run in runs]
    found = []
    for place in places:
        first, second = (
            BlindReply(text=replies[s][place.item_id].reply, trace=traces[s].get(place.item_id, ()))
            for s in ((0, 1) if place.a == "baseline" else (1, 0))
        )
        found.append(
            BlindPair(
                id=place.pair,
                stratum=place.stratum,
                a=first,
                b=second,
                identical=first.text.strip() == second.text.strip(),
                **shown[place.item_id],
            )
        )
    return tuple(found)


def _system(config: RunConfig) -> KeySystem:
    return KeySystem(
        run=config.id,
        policy_id=config.policy_id,
        harness_id=config.harness_id,
        agent=config.agent,
    )
