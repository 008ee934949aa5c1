"""What a comment names: its words without those that only ask."""

import re

from harness_cli.models.builtin.language import STOP_WORDS, language_of

_ASKING_CJK = re.compile(
    r"有没有|有什么|能不能|可不可以|是不是|多少钱|多少|怎么样|怎么|什么|哪个|哪款|哪些|推荐一下|推荐|"
    r"一下|请问|主播|老板|有吗|帮我|给我|我想|想要|看看|吗|呢|吧|啊|呀|了|的|有|找|买"
)
_ASKING_WORDS = """
how what which who when where why much many is are there looking want need show
recommend find buy sell price cost good best something anything host seller do have
got tell know think like one
"""
_ASKING = frozenset(_ASKING_WORDS.split())


def keywords(comment: str) -> str:
    """The words of a comment that name something rather than ask."""
    if language_of(comment) == "zh":
        return _ASKING_CJK.sub("", " ".join(re.findall(r"[\w\u4e00-\u9fff]+", comment))).strip()
    kept = [
        w
        for w in re.findall(r"[A-Za-z][\w-]*|\d+", comment)
        if w.lower() not in STOP_WORDS and w.lower() not in _ASKING
    ]
    return " ".join(kept)
