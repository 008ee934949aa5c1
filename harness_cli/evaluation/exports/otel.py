"""Trajectories of a run or of serving logs as OpenTelemetry traces: to a collector, or a file."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness_cli.errors import HarnessError, UsageError
from harness_cli.evaluation.exports.otel_spans import NANO, Exported, spans
from harness_cli.evaluation.exports.otlp import Collector, Sent, Values, batches, request
from harness_cli.records.canonical import atomic_file
from harness_cli.records.journal import ItemRecord
from harness_cli.store.journal import read_at
from harness_cli.store.runs import RunFolder
from harness_cli.store.served import BadLine, read_served

_item = msgspec.json.Decoder(ItemRecord).decode


def of_run(run: RunFolder) -> Iterator[Exported]:
    """Every rollout of a run that ended, with its scores.

    A run keeps no clock time of a rollout: all are said to have begun when the run did.
    """
    began = _nanos_of(run.config().started)
    places = {(p.item, p.repeat): p.offset for p in run.places()}
    for trajectory in run.trajectories():
        key = (trajectory.item_id or "", trajectory.repeat)
        if key not in places:
            continue
        result = _item(read_at(run.journal, places[key])).result
        yield Exported(
            trajectory=trajectory,
            source=run.id,
            end_ns=began + round(trajectory.wall_s * NANO),
            run=run.id,
            state=result.state,
            scores={name: value for name, value in result.scores.items() if value is not None},
        )


def of_logs(paths: Iterable[Path], bad: list[BadLine]) -> Iterator[Exported]:
    """Every line of serving logs; damaged ones are put into `bad`."""
    for path in paths:
        for number, line in enumerate(read_served(path)):
            if isinstance(line, BadLine):
                bad.append(line)
                continue
            end = round(line.moment().timestamp() * 1000) * (NANO // 1000)
            yield Exported(
                trajectory=line.trajectory, source=f"{path.name} {number} {line.at}", end_ns=end
            )


def write_file(rollouts: Iterable[Exported], path: Path, *, content: bool) -> Sent:
    """OTLP JSON, one `ExportTraceServiceRequest` a line; whole or not at all."""
    if not path.parent.is_dir():
        raise UsageError(f"no folder `{path.parent}` to write `{path.name}` into")
    sent = Sent()
    with atomic_file(path) as file:
        for count, made in _batches(rollouts, content):
            file.write(msgspec.json.encode(request(made)) + b"\n")
            _add(sent, count, made)
    return sent


def send(rollouts: Iterable[Exported], collector: Collector, *, content: bool) -> Sent:
    """Request after request to a collector.

    Raises `HarnessError` at the first that it does not take, saying how many it had taken. Ids are
    the same the next time, so sending again doubles nothing where the backend keeps one of an id.
    """
    sent = Sent()
    for count, made in _batches(rollouts, content):
        try:
            sent.rejected += collector.send(made)
        except HarnessError as exc:
            done = f"{exc} ({sent.rollouts} rollouts were taken before)"
            raise HarnessError(done, hint=exc.hint) from exc
        _add(sent, count, made)
    return sent


def _batches(rollouts: Iterable[Exported], content: bool) -> Iterator[tuple[int, list[Values]]]:
    return batches(spans(one, content=content) for one in rollouts)


def _add(sent: Sent, count: int, made: list[Values]) -> None:
    sent.rollouts += count
    sent.spans += len(made)
    sent.requests += 1


def _nanos_of(text: str) -> int:
    found = datetime.fromisoformat(text)
    whole = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(whole.timestamp()) * NANO
