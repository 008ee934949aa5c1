"""What the judge said of one rollout of a run, votes included."""

import msgspec

from harness_cli.records.journal import VerdictRecord
from harness_cli.store.journal import scan
from harness_cli.store.runs import RunFolder


class _Named(msgspec.Struct):
    """The part of a verdict record that says whose it is."""

    item: str
    repeat: int = 0


_named = msgspec.json.Decoder(_Named).decode
_record = msgspec.json.Decoder(VerdictRecord).decode


def verdict_of(run: RunFolder, item: str, repeat: int = 0) -> VerdictRecord | None:
    """The last verdict on a rollout; None where no judge was asked."""
    found: bytes | None = None
    for line in scan(run.journal):
        if line.kind == "verdict":
            named = _named(line.data)
            if (named.item, named.repeat) == (item, repeat):
                found = line.data
    return None if found is None else _record(found)
