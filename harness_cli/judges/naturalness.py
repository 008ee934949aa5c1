"""Could a live host say it: no lists, markup, boilerplate or written-style phrasing (TR §5.5).

Deterministic, English and Chinese, blind to what the reply is about; a panel that decides the same
question in place of these rules gets `RUBRIC`. A reply with one problem is a
bad case; the problems say which of the host's habits, or of the harness's texts, to change.
"""

import re
from dataclasses import dataclass

from harness_cli.errors import JudgeError
from harness_cli.judges.outcome import Outcome
from harness_cli.records.item import Assertion
from harness_cli.records.trajectory import Trajectory

RUBRIC = (
    "A live host could say the reply aloud to this viewer: it is colloquial and short, one or two "
    "breaths. It has no list, markup, field label or bracketed aside, no boilerplate of an "
    "assistant or of customer service, and no phrasing that belongs on paper. How it is said is "
    "what counts, not whether it is true, complete or wanted."
)
"""METHODS §2's naturalness as a rubric for a panel (`naturalness: panel` of a judge)."""
LONGEST = 4_000
"""Characters that are looked at; a longer text is too long anyway."""
WORDS, HAN = 70, 120
"""More than this is no spoken reply (choice: about half a minute of speech)."""
SENTENCE_WORDS, SENTENCE_HAN = 32, 60
"""Longest stretch without a stop that a host says in one breath (choice)."""

_I = re.IGNORECASE


def _either(*patterns: str) -> str:
    return "|".join(patterns)


_MARKUP = _either(
    r"\*\*|__|~~|`|(?m:^#{1,6}\s)|(?m:^>\s)|(?m:^\|.*\|)",
    r"\[[^\]\n]{1,200}\]\([^)\n]{1,400}\)",
    r"</?[A-Za-z][\w-]{0,30}[^<>\n]{0,80}>|https?://|www\.|\{\s*\"",
    r"&(?:nbsp|amp|lt|gt);|[★■●◆→✅❌]",
)
_LIST = _either(
    r"(?m:^[ \t]*(?:[-*•·][ \t]+|\d{1,2}(?:[.)][ \t]+|、)|[(（]\d{1,2}[)）]|[①-⑳])\s*\S)",
    r"\b1[.)]\s+\S.{0,300}\b2[.)]\s|[(（]1[)）].{0,300}[(（]2[)）]|①.{0,300}②",
    r"第一[，,、：].{0,300}第二[，,、：]|首先.{0,300}其次",
    r"\bfirst(?:ly)?,.{0,300}\bsecond(?:ly)?,",
)
_BOILERPLATE = _either(
    r"\bas an? (?:AI|artificial intelligence|(?:large )?language model|virtual assistant)"
    r"\b[^.!?]{0,40}?,",
    r"\bI hope (?:this|that|it) helps\b|\b(?:feel free|do(?:n't| not) hesitate) to\b",
    r"\bif you have any (?:other |further |more )?(?:questions|concerns|queries)\b",
    r"\bthank you for (?:contacting|reaching out)\b",
    r"\bthank you for your (?:inquiry|enquiry|question|interest|patience)\b",
    r"\banything else I can (?:help|assist)\b",
    r"\bbased on (?:the|your) (?:information|context|data)\b",
    r"\baccording to (?:the|our) (?:tool|system|database|records?|information)\b",
    r"\bdear (?:customer|valued|user|viewer)\b|\b(?:great|excellent) question!",
    r"\bhere(?:'s| is| are) (?:a|the) (?:summary|overview|breakdown|list)\b",
    r"\bI(?:'d| would) be (?:happy|glad) to (?:assist|help) you\b",
    r"作为(?:一个|一名)?(?:AI|人工智能|语言模型|智能助手)|希望(?:以上|这些|我的回答)",
    r"如(?:有|您有)(?:任何|其他|更多)?(?:疑问|问题)|请(?:随时)?(?:与我们)?联系我们",
    r"感谢您的(?:咨询|提问|关注|耐心|理解)|温馨提示|尊敬的|亲爱的(?:用户|顾客|客户)",
    r"根据(?:您|系统|工具|数据|资料|查询|以上|相关)|为您(?:总结|整理|查询到)|以下(?:是|为)",
    r"竭诚|祝您(?:生活|购物)愉快",
)
_WRITTEN = _either(
    r"\b(?:furthermore|moreover|additionally|consequently|nevertheless|nonetheless)\b",
    r"\b(?:thereby|hereby|herein|whereas|thus|hence|kindly|respective(?:ly)?)\b",
    r"\bin (?:addition|conclusion|summary|accordance with|terms of|order to)\b",
    r"\bin the event (?:of|that)\b|\bwith (?:regard|respect) to\b|\bpertaining to\b",
    r"\bas (?:per|follows|mentioned above)\b|\b(?:prior|subsequent) to\b|\bdue to the fact\b",
    r"\bplease (?:be advised|note)\b|\butili[sz]e[ds]?\b|\bcommence[ds]?\b",
    r"\bthe (?:aforementioned|following|above|said product)\b|\bfeatur(?:es|ing) an?\b",
    r"\b(?:is|are) (?:hereby |strongly |highly )?(?:recommended|advised|required) (?:that|to)\b",
    r"\b(?:this|the) product (?:is|has|features|comes|offers|supports)\b",
    r";\s|\be\.g\.|\bi\.e\.|\betc\.|\band/or\b|\(s\)|—|--",
    r"此外|综上|总而言之|鉴于|基于|由此可见|因而|从而|与此同时|不仅如此",
    r"值得(?:一提|注意)的是|需要(?:说明|注意)的是|上述|前述|如下|以上(?:为|是)",
    r"本(?:产品|品|款|店|公司|平台|商品)|该(?:产品|款|商品|品|链接)|此(?:款|产品|商品|类)",
    r"予以|敬请|烦请|知悉|特此|谨此|方可|即可享|均(?:为|可|支持|采用|有)|亦(?:可|是)",
    r"若(?:您|有|需)|倘若|其(?:采用|具有|材质|价格)|具有.{0,12}(?:特点|功能|优势)",
    r"采用.{0,16}(?:材质|工艺|技术|设计)|进行(?:退|换|咨询|购买|使用|清洗)|；",
)
_FIELDS = re.compile(
    r"(?m:^[ \t]*[\w \u3400-\u9fff]{1,24}[:：].*\S\n[ \t]*[\w \u3400-\u9fff]{1,24}[:：].*\S)"
    r"|\b(?:price|stock|material|size|colou?r|name|product|brand)\s?:\s?\S"
    r"|(?:价格|库存|材质|尺码|规格|颜色|品名|名称|产品|品牌)[:：]",
    _I,
)
_RULES = (
    ("markup", re.compile(_MARKUP)),
    ("list", re.compile(_LIST, _I | re.DOTALL)),
    ("fields", _FIELDS),
    ("boilerplate", re.compile(_BOILERPLATE, _I)),
    ("written", re.compile(_WRITTEN, _I)),
    ("brackets", re.compile(r"[(（\[【][^)）\]】\n]{1,200}[)）\]】]")),
)
KINDS = (*(name for name, _ in _RULES), "long sentence", "too long")
"""Kinds of problems, in the order in which they are looked for."""
_BREATH = re.compile(
    r"[.!?…;:。！？；：\n]+(?=\s|$|[\u3400-\u9fff])|[,，、](?=[\u3400-\u9fff])|[。！？]"
)
_HAN = re.compile(r"[\u3400-\u9fff]")
_WORD = re.compile(r"[A-Za-z0-9][\w'’.-]*")


@dataclass(frozen=True, slots=True)
class Problem:
    """What a host would not say."""

    kind: str
    words: str


def problems(text: str) -> list[Problem]:
    """Every kind of problem of a reply once, with the words that show it."""
    looked_at = text[:LONGEST]
    found = [Problem(k, m[0].strip()[:40]) for k, p in _RULES if (m := p.search(looked_at))]
    for sentence in _BREATH.split(looked_at):
        if len(_WORD.findall(_HAN.sub(" ", sentence))) > SENTENCE_WORDS or (
            len(_HAN.findall(sentence)) > SENTENCE_HAN
        ):
            found.append(Problem("long sentence", sentence.strip()[:40]))
            break
    words, han = len(_WORD.findall(_HAN.sub(" ", text))), len(_HAN.findall(text))
    if words > WORDS or han > HAN:
        found.append(Problem("too long", f"{words} words" if words > WORDS else f"{han}字"))
    return found


def naturalness(assertion: Assertion, trajectory: Trajectory) -> Outcome:
    """The reply has no problem; `value` may name the kinds that count. Undecided over silence."""
    kinds = assertion.value or KINDS
    unknown = sorted(set(kinds) - set(KINDS)) if isinstance(kinds, list | tuple) else [kinds]
    if unknown:
        raise JudgeError(f"naturalness takes a list of {', '.join(KINDS)}, not `{unknown[0]}`")
    if not trajectory.reply.strip():
        return Outcome(None, "nothing was said")
    found = [p for p in problems(trajectory.reply) if p.kind in kinds]
    told = "; ".join(f"{p.kind} `{p.words}`" for p in found)
    return Outcome(not found, told or "as a host says it")
