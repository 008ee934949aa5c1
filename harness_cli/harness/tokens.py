"""Token counts without a tokenizer: estimates, always shown with `≈`."""

import re

_WIDE = re.compile(
    "[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U0001f300-\U0003ffff]"
)
CHARACTERS_PER_TOKEN = 4


def estimate(text: str) -> int:
    """≈ tokens: one per Chinese, Japanese or Korean character or emoji, one per 4 others.

    The rule of thumb of byte-pair vocabularies trained on both scripts; a policy's own
    tokenizer may differ by a third either way, which is why `≈` stands before every such count.
    """
    wide = len(_WIDE.findall(text))
    return wide + -(-(len(text) - wide) // CHARACTERS_PER_TOKEN)
