"""Numbers with what they count, for a reader: "1 edit", "2 edits"."""


def counted(n: int, one: str, many: str | None = None) -> str:
    """`n` and its noun; `many` where the plural is not the singular with an s."""
    return f"{n} {one if n == 1 else many or one + 's'}"
