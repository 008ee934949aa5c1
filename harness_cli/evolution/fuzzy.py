"""Where a model meant a hunk whose text is not exactly in the file: a suggestion for a reviewer.

Never applied unseen: the suggestion is an exact operation of its own that carries its likeness, and
a script cannot accept it (`review.accept_by_script`).
"""

import difflib
from typing import Any

import msgspec

from harness_cli.evolution.unified import lines_of
from harness_cli.records.diagnosis import Op

WORTH = 0.6
"""Below this likeness nothing is suggested."""


def suggest(text: str, op: Op) -> Op | None:
    """The `replace` operation that was probably meant, with its likeness; None when unclear.

    The window of lines most like the searched text is found; the change from `search` to `text`
    is carried over to it by diff-match-patch. A change that does not carry over whole, or a window
    that stands twice, is not suggested; nor is a text that is there, only not as often as expected.
    """
    if op.op != "replace" or not op.search or op.text is None or op.search in text:
        return None
    window, likeness = _nearest(text, op.search)
    if likeness < WORTH or text.count(window) != 1:
        return None
    carried = _carry(op.search, op.text, window)
    if carried is None or carried == window:
        return None
    return msgspec.structs.replace(
        op, search=window, text=carried, expected_count=1, placed=round(likeness, 3)
    )


def _nearest(text: str, search: str) -> tuple[str, float]:
    """The run of lines of the file most like the searched text, and how like it is."""
    lines, wanted = lines_of(text), lines_of(search)
    best, best_at, best_size = 0.0, 0, 0
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(search.strip())
    for size in {max(1, len(wanted) - 1), len(wanted), len(wanted) + 1}:
        for at in range(max(len(lines) - size + 1, 0)):
            matcher.set_seq1("".join(lines[at : at + size]).strip())
            if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
                score = matcher.ratio()
                if score > best:
                    best, best_at, best_size = score, at, size
    window = "".join(lines[best_at : best_at + best_size])
    if not search.endswith("\n"):
        window = window.removesuffix("\n")
    return window, best


def _carry(search: str, text: str, window: str) -> str | None:
    from diff_match_patch import diff_match_patch

    engine: Any = diff_match_patch()
    engine.Match_Distance = 2_000
    engine.Patch_DeleteThreshold = 0.4
    patches = engine.patch_make(search, text)
    done, fitted = engine.patch_apply(patches, window)
    return str(done) if all(fitted) else None
