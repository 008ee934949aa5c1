"""Comments as they are taken: spelt right, and those passed over that nothing speaks of."""

from dataclasses import replace
from functools import lru_cache

from harness_cli.models.builtin.mentions import mentions
from harness_cli.models.builtin.scene import Scene
from harness_cli.models.builtin.similarity import Candidate, Similarity
from harness_cli.models.builtin.situation import asked_for
from harness_cli.models.builtin.spelling import corrected, vocabulary


@lru_cache(maxsize=256)
def spelt(scene: Scene, similarity: Similarity) -> Scene:
    """The scene with its comments' typing errors set right by the words of the harness."""
    told = "\n".join([scene.system, *(t.text() for t in scene.tools)])
    known = vocabulary(told)
    comments = tuple(corrected(c, known, similarity.vectors.is_word) for c in scene.comments)
    return scene if comments == scene.comments else replace(scene, comments=comments)


@lru_cache(maxsize=256)
def heard(scene: Scene, similarity: Similarity) -> Scene:
    """Of several comments those that some skill's description shares a word with, if any does."""
    if len(scene.comments) < 2 or not scene.skills:
        return scene
    candidates = [Candidate.of(n, t) for n, t in scene.skills.items()]
    spoken_of = tuple(
        c
        for c in scene.comments
        if mentions(c, scene).said
        or similarity.rank_wording(asked_for(c, scene), candidates).top > 0
    )
    return replace(scene, comments=spoken_of) if spoken_of else scene
