"""Which drafted tokens a target accepts, and what it samples after the last of them.

SGLang's rule (`speculative_sampling.cuh`, target-only): a draft x is accepted if u ≤ p(x)/a or
p(x) ≥ s, with u uniform on [0, 1), the accumulated threshold a and the single one s. After a
rejection the token comes from p without x, renormalised; after the last draft it comes from p.

At a = s = 1 the token is distributed as p, whatever was drafted: x comes with probability p(x), any
other y with (1 − p(x)) · p(y)/(1 − p(x)). Below 1 the draft gains what the others lose.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Probabilities = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Acceptance thresholds of a server. Defaults are exact; TR Table 19 has 0.5 and 0.7."""

    single: float = 1.0
    acc: float = 1.0

    @property
    def lossy(self) -> bool:
        """Whether the sampled distribution is another than the policy's."""
        return self.single < 1 or self.acc < 1


EXACT = Thresholds()


def accepts(p: Probabilities, draft: int, u: float, thresholds: Thresholds = EXACT) -> bool:
    """Whether a draft is taken; `p` (V,) is what the target samples from, `u` in [0, 1)."""
    chance = float(p[draft])
    # u = 0 must not accept a token that the target never samples.
    return (chance > 0 and u <= chance / thresholds.acc) or chance >= thresholds.single


def after_rejection(p: Probabilities, draft: int) -> Probabilities:
    """What the token comes from when the draft was not taken: p without it. (V,)"""
    left = p.copy()
    left[draft] = 0.0
    total = left.sum()
    # All mass on the draft: rounding alone can have rejected it.
    return left / total if total > 0 else p


def distribution(p: Probabilities, draft: int, thresholds: Thresholds = EXACT) -> Probabilities:
    """The distribution of the token that comes out, draft taken or not; equal to p when exact."""
    chance = float(p[draft])
    taken = 1.0 if chance >= thresholds.single else min(1.0, chance / thresholds.acc)
    made = (1.0 - taken) * after_rejection(p, draft)
    made[draft] += taken
    return made


def pick(p: Probabilities, u: float) -> int:
    """The token at `u` of p, tokens side by side in their own order."""
    sums = p.cumsum()
    at = int(np.searchsorted(sums, u * sums[-1], side="right"))
    return min(at, int(np.flatnonzero(p)[-1]))


def shaped(logits: NDArray[np.float64], temperature: float, top_p: float) -> Probabilities:
    """What is sampled from: softmax at a temperature above 0, the tail beyond `top_p` cut off.

    `logits` (V,). Kept are the likeliest tokens that together reach `top_p`, renormalised.
    """
    scaled = logits / temperature
    p = np.exp(scaled - scaled.max())
    p /= p.sum()
    if top_p >= 1:
        return np.asarray(p, dtype=np.float64)
    order = np.argsort(-p, kind="stable")
    last = int(np.searchsorted(p[order].cumsum(), top_p))
    kept = np.zeros_like(p)
    kept[order[: last + 1]] = p[order[: last + 1]]
    return np.asarray(kept / kept.sum(), dtype=np.float64)
