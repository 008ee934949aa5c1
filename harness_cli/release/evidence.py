"""Evidence: the lines that gates rest on, as a compressed file that is committed and bound."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness_cli.errors import BadFile
from harness_cli.records.canonical import canonical_json, sha256, write_atomic
from harness_cli.records.manifest import EvidenceLine
from harness_cli.records.reader import parse_json
from harness_cli.records.run import RunConfig
from harness_cli.records.verdict import ItemResult


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """One run as a gate sees it."""

    run: str
    lines: tuple[EvidenceLine, ...]
    planned: int
    repeat: int = 1
    need: int | None = None
    complete: bool = True
    fresh: bool = True
    config: RunConfig | None = None
    """None where only the committed evidence is left of the run."""
    judge_id: str = ""
    evalset: str = ""
    evalset_digest: str = ""
    report_sha256: str = ""
    started: str = ""
    concurrency: tuple[int, ...] = ()
    """Requests at a time, of each process that worked on it; empty where nobody wrote it down."""


def line_of(run: str, result: ItemResult) -> EvidenceLine:
    """An item's result without its texts."""
    return EvidenceLine(
        run=run,
        item_id=result.item_id,
        repeat=result.repeat,
        category=result.category,
        tags=result.tags,
        state=result.state,
        scores=result.scores,
        route=result.route,
        fell_back=result.fell_back,
        wall_s=result.wall_s,
        ttft_s=result.ttft_s,
        verdict_sha256=sha256(
            canonical_json([result.scores, list(result.findings), list(result.assertions)])
        ),
        trajectory_sha256=result.trajectory_sha256,
    )


def ordered(lines: Iterable[EvidenceLine]) -> list[EvidenceLine]:
    """Lines by run, item and repeat: one set of lines, one byte form."""
    return sorted(lines, key=lambda e: (e.run, e.item_id, e.repeat))


def lines_sha256(lines: Iterable[EvidenceLine]) -> str:
    """The digest of a set of lines, whatever their order on disk or the compressor's version."""
    return sha256(b"\n".join(canonical_json(line) for line in ordered(lines)))


def evidence_bytes(lines: Iterable[EvidenceLine]) -> bytes:
    """The bytes of `manifests/evidence/<id>.jsonl.zst`."""
    import zstandard

    text = b"".join(canonical_json(line) + b"\n" for line in ordered(lines))
    return zstandard.ZstdCompressor(level=10).compress(text)


def write_evidence(path: Path, lines: Iterable[EvidenceLine]) -> None:
    """`manifests/evidence/<id>.jsonl.zst`."""
    write_atomic(path, evidence_bytes(lines))


def read_evidence(data: bytes, *, name: str, limit: int = 1 << 30) -> Iterator[EvidenceLine]:
    """The lines of an evidence file; `limit` bytes bound what a hostile file can unpack to."""
    import zstandard

    try:
        text = zstandard.ZstdDecompressor().stream_reader(data).read(limit + 1)
    except zstandard.ZstdError as exc:
        raise BadFile(f"{name}: not a whole zstd file: {exc}") from exc
    if len(text) > limit:
        raise BadFile(f"{name}: unpacks to more than {limit} bytes")
    for number, line in enumerate(text.splitlines(), 1):
        yield parse_json(line, EvidenceLine, name=f"{name}:{number}")
