"""When comments come: a self-exciting point process, so that comments come in bursts.

A Hawkes process with an exponential kernel (Hawkes 1971, "Spectra of some self-exciting and
mutually exciting point processes", Biometrika 58(1)), in simulated seconds:

    λ(t) = μ + Σ_{t_i < t} n β e^{−β (t − t_i)} + Σ_{k: τ_k < t} s_k β e^{−β (t − τ_k)}

μ is the base rate, n < 1 the branching ratio (comments that one comment brings about), 1/β how long
a burst lasts. The last sum is what the room itself brings about: s_k comments on average follow the
happening at τ_k (a link is presented, an offer opens). Drawn exactly by Ogata's thinning (Ogata
1981, "On Lewis' simulation method for point processes", IEEE Trans. Inf. Theory 27(1)): between
events λ only falls, so its value after the last event bounds it.

Without happenings, started empty, the expected number by time T is (with κ = β (1 − n))

    E N(T) = μ/(1−n) · T − μ n/(1−n) · (1 − e^{−κT})/κ
"""

import math
import random
from collections.abc import Sequence
from typing import Annotated

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.bounds import NotNegative, Positive

MOST = 100_000
"""Arrivals of one session; more are a setting gone wrong."""


class Arrivals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters. Rates are per simulated second (**choice**: a room of middling size)."""

    base: Positive = 0.06
    """μ."""
    branching: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.5
    """n; 0 is a Poisson process."""
    decay: Positive = 0.2
    """β."""
    stir: NotNegative = 1.0
    """s: comments that a happening of the room brings about."""

    def expected(self, seconds: float) -> float:
        """E N(T), without happenings."""
        n, kappa = self.branching, self.decay * (1 - self.branching)
        stationary = self.base / (1 - n)
        return stationary * (seconds - n * (1 - math.exp(-kappa * seconds)) / kappa)


def arrival_times(
    arrivals: Arrivals,
    seconds: float,
    rng: random.Random,
    *,
    happenings: Sequence[float] = (),
) -> list[float]:
    """The times of one session, ascending, in [0, `seconds`)."""
    found: list[float] = []
    stirs = [t for t in sorted(happenings) if 0 <= t < seconds]
    base, decay = arrivals.base, arrivals.decay
    kick = arrivals.branching * decay
    excess, now = 0.0, 0.0
    """`excess` is λ − μ at `now`."""
    draw, log, exp = rng.random, math.log, math.exp
    stirs.append(math.inf)
    stir = stirs.pop(0)
    while True:
        upper = base + excess
        after = now - log(1.0 - draw()) / upper  # `rng.expovariate(upper)`
        if stir <= after:
            # λ jumps up here: the bound holds no further, and the process has no memory of it.
            excess = excess * exp(decay * (now - stir)) + arrivals.stir * decay
            now, stir = stir, stirs.pop(0)
            continue
        if after >= seconds:
            return found
        excess *= exp(decay * (now - after))
        now = after
        if draw() * upper <= base + excess:
            found.append(now)
            excess += kick
            if len(found) > MOST:
                raise UsageError(f"more than {MOST} comments in one session", hint="lower `base`")
