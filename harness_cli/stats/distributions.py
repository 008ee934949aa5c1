"""Normal, t, χ², beta and binomial tails without scipy: its import costs 0.7 s of every command."""

import math
from statistics import NormalDist

_NORMAL = NormalDist()


def normal_quantile(p: float) -> float:
    """z with Φ(z) = p, 0 < p < 1."""
    return _NORMAL.inv_cdf(p)


def normal_cdf(z: float) -> float:
    """Φ(z)."""
    return _NORMAL.cdf(z)


def t_cdf(t: float, df: float) -> float:
    """P(T ≤ t) of Student's t with `df` degrees of freedom (Abramowitz & Stegun 26.7.1)."""
    tail = 0.5 * _incomplete_beta(df / (df + t * t), df / 2, 0.5)
    return 1 - tail if t > 0 else tail


def t_quantile(p: float, df: float) -> float:
    """t with P(T ≤ t) = p, found by bisection; 0 < p < 1, df ≥ 1."""
    if p == 0.5:
        return 0.0
    low, high = -1.0, 1.0
    while t_cdf(low, df) > p:
        low *= 2
    while t_cdf(high, df) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if t_cdf(middle, df) < p:
            low = middle
        else:
            high = middle
        if high - low < 1e-12 * max(1.0, abs(high)):
            break
    return (low + high) / 2


def binomial_pmf(k: int, n: int, p: float = 0.5) -> float:
    """P(X = k) for X ~ Binomial(n, p), by logarithms: no overflow at any n."""
    if p in (0.0, 1.0):
        return float(k == (n if p else 0))
    log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(log + k * math.log(p) + (n - k) * math.log1p(-p))


def chi2_sf(x: float, df: int) -> float:
    """P(X > x) of χ² with `df` degrees of freedom: Q(df/2, x/2), the upper incomplete gamma."""
    if x <= 0:
        return 1.0
    a, x = df / 2, x / 2
    log = -x + a * math.log(x) - math.lgamma(a)
    if x < a + 1:
        return 1.0 - math.exp(log) * _gamma_series(a, x)
    return math.exp(log) * _gamma_fraction(a, x)


def _gamma_series(a: float, x: float) -> float:
    """Σ xⁿ Γ(a)/Γ(a + 1 + n) of the lower incomplete gamma (A&S 6.5.29)."""
    term = total = 1 / a
    n = a
    while abs(term) > 1e-17 * abs(total):
        n += 1
        term *= x / n
        total += term
    return total


def _gamma_fraction(a: float, x: float) -> float:
    """The continued fraction of the upper incomplete gamma (A&S 6.5.31), by Lentz."""
    b = x + 1 - a
    c, d = 1e300, 1 / b
    value = d
    for i in range(1, 500):
        step = -i * (i - a)
        b += 2
        d = 1 / (step * d + b or 1e-300)
        c = b + step / c or 1e-300
        value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value


def beta_quantile(p: float, a: float, b: float) -> float:
    """x with I_x(a, b) = p, found by bisection; 0 < p < 1."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if _incomplete_beta(middle, a, b) < p:
            low = middle
        else:
            high = middle
        if high - low < 1e-15:
            break
    return (low + high) / 2


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), A&S 26.5.8's continued fraction."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(1.0 - x, b, a)
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log + a * math.log(x) + b * math.log1p(-x)) / a
    return front * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation of the continued fraction; quick for x below the mean."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / max(tiny, 1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / (1.0 + term * d or tiny)
            c = 1.0 + term / c or tiny
            value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value
