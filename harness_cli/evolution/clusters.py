"""New failures grouped by TF-IDF, SVD and KMeans; scikit-learn does the work, seeded.

Instead of the words themselves their meaning may count (`static`): comment and reply as the mean of
the word vectors that ship with the `builtin` policy, beside the facts, which weigh more.

What is clustered is a bag of tokens per failure: its facts (each thrice, the leading one five
times, since facts say more than words), words and word pairs of comment and reply, and pieces
of two and three characters of Chinese runs.

The number of clusters (choice): every k from 2 to min(12, n // 4) is tried on at most 1,000
failures drawn with the seed; the k with the best mean silhouette wins, ties go to the smaller;
below a silhouette of 0.05 there is no structure and all is one cluster. A member whose cosine to
its centre is under 0.2 stays unexplained. Cost is linear in the number of failures.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

from harness_cli.errors import UnknownName
from harness_cli.evolution.failure import Failure
from harness_cli.records.diagnosis import FailureClass

SEED = 0
SAMPLE = 1_000
MOST = 12
NO_STRUCTURE = 0.05
COHESION = 0.2
FACTS, MEANING = 0.8, 0.6
"""Lengths of the two parts of a `static` row (choice): 64 % of a cosine are facts, 36 % words."""
LIKENESS = 0.25
"""Cosine from which a failure belongs to a class that is described in prose only."""

Kind = Literal["tfidf", "static"]
"""What words count by: themselves, or the meaning that static word vectors give them."""
SORTED_BY: dict[Kind, str] = {
    "tfidf": "facts and KMeans",
    "static": "facts and KMeans over static word vectors",
}
KINDS: tuple[Kind, ...] = get_args(Kind)

_WORD = re.compile(r"[^\W\d_\u3400-\u9fff]{2,}|[\u3400-\u9fff]+")
_HAN = re.compile(r"[\u3400-\u9fff]")


def kind_of(name: str) -> Kind:
    """The kind of that name. Raises `UnknownName`."""
    for kind in KINDS:
        if kind == name:
            return kind
    raise UnknownName.of("kind of vectors", name, KINDS)


def tokens(failure: Failure) -> list[str]:
    """The bag of one failure."""
    return facts_of(failure) + words(failure.seen.comment) + words(failure.reply[:400])


def facts_of(failure: Failure) -> list[str]:
    """What was observed of one failure, as tokens."""
    bag: list[str] = []
    for place, observation in enumerate(failure.observations):
        bag += [f"={observation.key}"] * (5 if place == 0 else 3)
    return bag + [f"={metric}" for metric in failure.failed_metrics]


def words(text: str) -> list[str]:
    """Words, word pairs, and pieces of Chinese runs."""
    bag: list[str] = []
    previous = ""
    for token in _WORD.findall(text.casefold()):
        if _HAN.match(token):
            bag += [token[i : i + n] for n in (2, 3) for i in range(len(token) - n + 1)]
            previous = ""
            continue
        bag.append(token)
        if previous:
            bag.append(f"{previous} {token}")
        previous = token
    return bag


def cluster(failures: Sequence[Failure], kind: Kind = "tfidf") -> tuple[list[list[int]], list[int]]:
    """Groups of positions in `failures`, and the positions that fit none.

    Fewer than six failures are not clustered: those with the same leading fact form a group.
    """
    if len(failures) < 6:
        return by_leading_fact(failures)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1):  # sums in one order: the same clusters on every machine
        if kind == "static":
            return _kmeans(_static(failures))
        return _kmeans(_vectors([tokens(f) for f in failures]))


def by_leading_fact(failures: Sequence[Failure]) -> tuple[list[list[int]], list[int]]:
    """Positions grouped by the leading fact; those without a fact fit none."""
    groups: dict[str, list[int]] = {}
    left = []
    for i, failure in enumerate(failures):
        if failure.leading is None:
            left.append(i)
        else:
            groups.setdefault(failure.leading.key, []).append(i)
    return list(groups.values()), left


def _vectors(bags: Sequence[Sequence[str]]) -> Any:
    """Rows of unit length, (n, ≤ 50), float64."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.preprocessing import normalize

    rare = 2 if len(bags) >= 20 else 1
    model = TfidfVectorizer(analyzer=_as_it_is, sublinear_tf=True, min_df=rare, max_features=20_000)
    weights = model.fit_transform(bags)
    size = min(50, weights.shape[1] - 1, len(bags) - 1)
    if size < 2:
        return normalize(weights.toarray())
    return normalize(TruncatedSVD(size, random_state=SEED).fit_transform(weights))


def _static(failures: Sequence[Failure]) -> Any:
    """Rows of unit length: facts, then comment and reply by their word vectors."""
    import numpy as np
    from sklearn.preprocessing import normalize

    facts = _vectors([facts_of(f) for f in failures])
    meant = _meanings([_spoken(f"{f.seen.comment} {f.reply[:400]}") for f in failures])
    return normalize(np.hstack([FACTS * facts, MEANING * meant]))


def _spoken(text: str) -> list[str]:
    """Words as word vectors know them: without pairs, Chinese runs in pieces of two."""
    found: list[str] = []
    for token in _WORD.findall(text.casefold()):
        if _HAN.match(token) and len(token) > 2:
            found += [token[i : i + 2] for i in range(len(token) - 1)]
        else:
            found.append(token)
    return found


def _meanings(bags: Sequence[Sequence[str]]) -> Any:
    """The mean of the texts' token vectors, less what all texts share: unit rows of at most 50
    dimensions. A word is read once, however many failures hold it."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize

    from harness_cli.evolution.word_sums import WordSums

    if not any(bags):
        return np.zeros((len(bags), 1))
    model = CountVectorizer(analyzer=_as_it_is, max_features=20_000)
    counts = model.fit_transform(bags)
    said = normalize(counts @ WordSums().of([str(w) for w in model.get_feature_names_out()]))
    said -= said.mean(axis=0)
    # Of a matrix of 256 columns the axes come from its covariance, at the price of one product.
    _, axes = np.linalg.eigh(said.T @ said)
    return normalize(said @ axes[:, -50:])


def _as_it_is(bag: Sequence[str]) -> Sequence[str]:
    return bag


def _kmeans(rows: Any) -> tuple[list[list[int]], list[int]]:
    import numpy as np
    from sklearn.cluster import KMeans

    model = KMeans(choose_k(rows), n_init=3, random_state=SEED).fit(rows)
    lengths = np.linalg.norm(model.cluster_centers_, axis=1)
    centres = model.cluster_centers_ / np.maximum(lengths, 1e-12)[:, None]
    near = np.einsum("ij,ij->i", rows, centres[model.labels_])
    groups: dict[int, list[int]] = {}
    left = []
    for i, label in enumerate(model.labels_):
        if near[i] < COHESION:
            left.append(i)
        else:
            groups.setdefault(int(label), []).append(i)
    return [groups[label] for label in sorted(groups)], left


def choose_k(rows: Any) -> int:
    """The number of clusters, by the rule at the head of this module."""
    import numpy as np
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    n = len(rows)
    if n > SAMPLE:
        chosen = np.random.default_rng(SEED).choice(n, SAMPLE, replace=False)
        rows = rows[np.sort(chosen)]
    distinct = len(np.unique(rows.round(6), axis=0))
    best, best_k = NO_STRUCTURE, 1
    for k in range(2, min(MOST, len(rows) // 4, distinct) + 1):
        labels = KMeans(k, n_init=1, random_state=SEED).fit_predict(rows)
        score = round(float(silhouette_score(rows, labels)), 4)
        if score > best:
            best, best_k = score, k
    return best_k


def nearest_class(failures: Sequence[Failure], classes: Sequence[FailureClass]) -> dict[int, str]:
    """Position → class id, by the words of classes that have no rule; only where they are alike."""
    if not failures or not classes:
        return {}
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = [words(" ".join([c.name, c.definition, *c.examples, c.body])) for c in classes]
    bags = [words(f"{f.seen.comment} {_told(f)}") for f in failures]
    model = TfidfVectorizer(analyzer=_as_it_is, sublinear_tf=True)
    weights = model.fit_transform([*texts, *bags])
    likeness = (weights[len(texts) :] @ weights[: len(texts)].T).toarray()
    best = likeness.argmax(axis=1)
    return {i: classes[int(c)].id for i, c in enumerate(best) if likeness[i, int(c)] >= LIKENESS}


def _told(failure: Failure) -> str:
    return " ".join(f"{o.kind} {o.detail} {o.note}".replace("_", " ") for o in failure.observations)
