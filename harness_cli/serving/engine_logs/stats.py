"""From batch lines to diagnostics: spreads, what *accept rate* means, what to make of it.

Decode lines come every so many steps (40 by default), not every so many seconds: a busy minute has
more lines than a quiet one. Each series is shown both ways: a line counts once, and it counts as
long as the steps took that it speaks of. Source: SGLang's logger; TR App. H.2 and Table 20.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from harness_cli.records.engine_logs import Convention, LogStats, Spread
from harness_cli.serving.engine_logs.reading import Floats, Reading, Table
from harness_cli.stats.weighted import sorted_percentile

OLD: Final[Convention] = "accept_len/drafts"
NEW: Final[Convention] = "(accept_len-1)/(drafts-1)"
MOST_DRAFTS: Final = 33
FITTING: Final = 0.9
"""Share of the lines that a convention must explain within rounding."""
LONG: Final = 20.0
LONG_S: Final = 60.0
DEFAULT_RUNNING: Final = 48
"""What SGLang sets `max_running_requests` to where speculation is on and nothing is said."""


def log_stats(reading: Reading, table: Table) -> LogStats:
    """The diagnostics of one log."""
    table, repeated = _one_rank_each(reading, table)
    at = table.at[np.isfinite(table.at)]
    decode = table.decode
    idle = _after_idle(table)
    gaps, backwards = _gaps(table, idle)
    busy = decode & ~idle
    lengths, rates = table.column("accept_len"), table.column("accept_rate")
    drafts_told = reading.server.get("speculative_num_draft_tokens", "")
    told = int(drafts_told) if drafts_told.isdigit() else None
    paired = decode & np.isfinite(lengths) & np.isfinite(rates)
    convention, drafts = convention_of(lengths[paired], rates[paired], told)
    running = _summed(table, "running")
    return LogStats(
        log=reading.name,
        lines=reading.lines,
        prefill=int((~decode).sum()),
        decode=int(decode.sum()),
        repeated=repeated,
        other=reading.other,
        foreign=reading.foreign,
        mangled=len(reading.mangled),
        mangled_at=tuple(reading.mangled[:8]),
        begins=_stamp(at.min()) if len(at) else None,
        ends=_stamp(at.max()) if len(at) else None,
        backwards=backwards,
        ranks=tuple(t for t in reading.ranks if t),
        formats=tuple(f"{label} ({count})" for label, count in reading.formats.most_common()),
        running=spread(running[decode], gaps[decode]),
        queue=spread(_summed(table, "queue")[decode], gaps[decode]),
        accept_len=spread(lengths[decode], gaps[decode]),
        accept_rate=spread(rates[decode], gaps[decode]),
        throughput=spread(_summed(table, "throughput")[busy], gaps[busy]),
        prefill_throughput=spread(table.column("input_throughput")[~decode], None),
        idle_lines=int((decode & idle).sum()),
        convention=convention,
        drafts=drafts,
        rate_old=_mean(lengths[decode] / drafts) if drafts else None,
        rate_new=_mean((lengths[decode] - 1) / (drafts - 1)) if drafts and drafts > 1 else None,
        retractions=reading.retractions,
        retracted=reading.retracted,
        ready=reading.ready,
        health_failures=reading.health_failures,
        statuses=dict(sorted(reading.statuses.items())),
        capacity=reading.capacity,
        server=reading.server,
        warnings=tuple(_warnings(reading, table, lengths[decode], convention, backwards)),
    )


def spread(values: Floats, weights: Floats | None) -> Spread | None:
    """A series, its missing values left out; None for one without values."""
    kept = np.isfinite(values)
    data = values[kept]
    if not len(data):
        return None
    ones = np.ones(len(data))
    order = np.argsort(data, kind="stable")
    data = data[order]
    made = Spread(
        lines=len(data),
        mean=float(data.mean()),
        p50=sorted_percentile(data, ones, 50),
        p95=sorted_percentile(data, ones, 95),
        max=float(data[-1]),
    )
    held = weights[kept][order] if weights is not None else np.zeros(len(data))
    total = float(held.sum())
    if total <= 0:
        return made
    return Spread(
        lines=made.lines,
        mean=made.mean,
        p50=made.p50,
        p95=made.p95,
        max=made.max,
        time_mean=float((data * held).sum() / total),
        time_p50=sorted_percentile(data, held, 50),
        time_p95=sorted_percentile(data, held, 95),
        seconds=total,
    )


def convention_of(
    lengths: Floats, rates: Floats, drafts: int | None
) -> tuple[Convention | None, int | None]:
    """Which meaning of *accept rate* explains the lines, and with how many draft tokens.

    Both numbers are logged with two digits; a line fits where the two agree within that rounding.
    None where neither fits, or both do.
    """
    if not len(rates):
        return None, drafts
    counts = [drafts] if drafts and drafts > 1 else range(2, MOST_DRAFTS)
    best: dict[Convention, tuple[float, float, int]] = {}
    for n in counts:
        for name, made, size in (
            (OLD, lengths / n, n),
            (NEW, (lengths - 1) / (n - 1), n - 1),
        ):
            error = np.abs(made - rates)
            share = float((error <= 0.0051 + 0.005 / size).mean())
            found = (share, -float(error.mean()), n)
            if name not in best or found > best[name]:
                best[name] = found
    fits = {name: found for name, found in best.items() if found[0] >= FITTING}
    if len(fits) != 1:
        return None, drafts
    ((name, (_, _, n)),) = fits.items()
    return name, n


def _one_rank_each(reading: Reading, table: Table) -> tuple[Table, int]:
    """Of the ranks of one data-parallel group only the one that logged most: they say the same.

    Lines without a tag (one process, or a log put together of two servers') go with the first.
    Also how many lines were left out so.
    """
    tags = list(reading.ranks)
    if not len(table.line):
        return table, 0
    counts = np.bincount(table.rank, minlength=len(tags))
    groups: dict[str, list[int]] = {}
    for number, tag in enumerate(tags):
        if tag:
            groups.setdefault(_group(tag), []).append(number)
    # Equal counts: the one that was seen first.
    chosen = [max(g, key=lambda n: (counts[n], -n)) for g in groups.values()]
    ranks = table.rank.copy()
    if "" in tags and chosen:
        ranks[ranks == tags.index("")] = chosen[0]
    wanted = np.ones(len(tags) or 1, np.bool_)
    if chosen:
        wanted[:] = False
        wanted[chosen] = True
    kept = wanted[ranks]
    cut = Table(
        table.line[kept], table.at[kept], ranks[kept], table.decode[kept], table.values[kept]
    )
    return cut, int((~kept).sum())


def _group(tag: str) -> str:
    """The data-parallel part of `DP0 TP1 EP1`; lines without one are one group."""
    parts = [p for p in tag.split() if p.startswith(("DP", "ATTN_DP"))]
    return " ".join(parts)


def _after_idle(table: Table) -> NDArray[np.bool_]:
    """First decode lines of a rank, and those after a prefill that found nothing running.

    A gap beyond `LONG` usual ones and `LONG_S` seconds counts as idle time as well.
    """
    found = np.zeros(len(table.line), np.bool_)
    alone = ~table.decode & (table.column("running") == 0)
    for rank in _ranks(table.rank):
        own = table.rank == rank
        at = np.flatnonzero(own & table.decode)
        begun = np.cumsum(alone & own)[at]
        steps = np.diff(table.at[at], prepend=np.nan)
        usual = _median(steps[steps >= 0])
        found[at] = (np.diff(begun, prepend=-1) > 0) | (steps > max(LONG_S, LONG * usual))
    return found


def _gaps(table: Table, idle: NDArray[np.bool_]) -> tuple[Floats, int]:
    """Seconds since the decode line before, of the same rank; a clock that jumps back weighs 0.

    A line after idle time counts as long as others do (their median): most of its gap was idle.
    """
    gaps, backwards = np.zeros(len(table.line)), 0
    for rank in _ranks(table.rank):
        at = np.flatnonzero((table.rank == rank) & table.decode)
        steps = np.diff(table.at[at], prepend=np.nan)
        backwards += int((steps < 0).sum())
        usual = steps[~idle[at] & (steps >= 0)]
        filled = np.where(idle[at], _median(usual), steps)
        gaps[at] = np.where(np.isfinite(filled) & (filled > 0), filled, 0.0)
    # Several ranks cover the same time: each holds its share of it.
    return gaps / max(1, len(_ranks(table.rank[table.decode]))), backwards


def _summed(table: Table, name: str) -> Floats:
    """A series over all ranks: at each line, the sum of what every rank said last."""
    values = table.column(name)
    ranks = _ranks(table.rank[table.decode])
    if len(ranks) < 2:
        return values
    total = np.zeros(len(values))
    for rank in ranks:
        own = np.flatnonzero((table.rank == rank) & table.decode)
        last = np.searchsorted(own, np.arange(len(values)), side="right") - 1
        total += np.where(last >= 0, values[own[np.maximum(last, 0)]], 0.0)
    return total


def _ranks(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which ranks there are, in order: small numbers are counted, not sorted."""
    return np.flatnonzero(np.bincount(ranks))


def _median(values: Floats) -> float:
    """The middle; 0 of nothing. (numpy's own loads its masked arrays first.)"""
    if not len(values):
        return 0.0
    data, half = np.sort(values), len(values) // 2
    return float(data[half] if len(data) % 2 else (data[half - 1] + data[half]) / 2)


def _mean(values: Floats) -> float | None:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else None


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(float(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S")


def _warnings(
    reading: Reading,
    table: Table,
    lengths: Floats,
    convention: Convention | None,
    backwards: int,
) -> Sequence[str]:
    said = []
    known = lengths[np.isfinite(lengths)]
    if len(known) and float(known.mean()) <= 1.02:
        said.append(
            "accept length is 1.00: the head drafts nothing that is accepted · harness mtp check"
        )
    if np.isfinite(table.column("accept_rate")).any() and convention is None:
        said.append("the log does not tell which meaning of accept rate it has: compare no rates")
    if backwards:
        said.append(f"the clock went back {backwards} times; those steps have no weight in time")
    most = reading.capacity.get("max_running_requests")
    if len(known) and most == DEFAULT_RUNNING:
        said.append(f"max_running_requests is {DEFAULT_RUNNING}, SGLang's own limit for MTP")
    if reading.retractions:
        said.append(f"the cache was full {reading.retractions} times: requests ran twice")
    if reading.mangled:
        said.append(f"{len(reading.mangled)} batch lines are mangled and left out")
    return said
