"""Tests, certificates, awards and recommendations by others: a claim no source makes.

Who is said to have tested, certified, awarded or recommended something is nowhere in a catalogue
by accident: where no text of product, shop, policy, offer or tool result says so, it is invented.
It may be said of one product or of the whole room.
"""

import re

from harness_cli.judges.grounded.language import Clause, phrases, words
from harness_cli.judges.grounded.reading import Reading

_WHO = (
    r"(?:doctors?|dentists?|dermatologists?|physicians?|scientists?|experts?|specialists?"
    r"|professionals?|nutritionists?|(?:pa)?ediatricians?|vets?|veterinarians?|pharmacists?"
    r"|celebrit(?:y|ies)|stars?|athletes?|olympians?|astronauts?|chefs?|stylists?|influencers?"
    r"|magazines?|hospitals?|clinics?|universit(?:y|ies)|laborator(?:y|ies)|labs?|institutes?"
    r"|government|ministry|authorit(?:y|ies)|agenc(?:y|ies)|association|fda|nasa|un|who)"
)
_DONE = (
    r"(?:tested|certified|approved|proven|recommended|endorsed|accredited|licensed|verified"
    r"|inspected|audited|patented|awarded|honou?red|validated|selected)"
)
ENDORSED = phrases(
    rf"""
    \b(?:clinically|scientifically|medically|officially|independently|professionally\
    |lab(?:oratory)?[- ]?|dermatologist[- ]?|doctor[- ]?|fda[- ]?|vet[- ]?|safety[- ]?\
    |internationally|nationally)\
    \ ?{_DONE}\b
    \b{_DONE} (?:\w+ ){{0,2}}?by (?:\w+ ){{0,4}}?{_WHO}\b
    \b{_WHO} (?:\w+ ){{0,2}}?(?:recommend|approve|endorse|certif|swear by|test|use|choose|love)\w*\b
    \b(?:is|are|was|were|been|all|fully|officially) (?:\w+ )?(?:certified|accredited|patented\
    |award[- ]winning)\b
    \b(?:been|was|were) (?:\w+ )?(?:tested|proven|approved|awarded|certified)\
    \ (?:in|by|at|on|for|to|safe)\b
    \baward[- ]winning\b
    \b(?:won|received|earned|holds?) (?:\w+ ){{0,4}}?(?:awards?|prizes?|medals?|patents?\
    |certificat\w+)\b
    \b(?:studies|research|science|trials|clinical trials|tests) (?:show|prove|confirm|back|say)\w*\b
    (?:国家|权威|官方|国际|专业|第三方|临床|科学|医学|欧盟|美国|fda|iso|专家|医生|医院|实验室|科学家
    营养师|皮肤科)[^，。！？!?,\n]{{0,8}}?(?:认证|检测|检验|验证|认可|批准|推荐|证明|背书|代言|实验|试用|测试)
    (?:通过|获得?|拿(?:过|了|到)|有|经过?|取得)[^，。！？!?,\n]{{0,10}}?(?:认证|专利|大奖|金奖|奖项|证书|临床)
    (?:专家|医生|明星|网红|宇航员|航天员|运动员|博主|皮肤科|营养师|大夫|模特)[^，。！？!?,\n]{{0,8}}?\
    (?:推荐|代言|同款|试用|用过|都在用|认可|强推|背书)
    研究(?:表明|证明|显示)|科学(?:家)?(?:证明|证实)
    """
)
_STEMS = [
    *(
        re.compile(rf"\b{stem}")
        for stem in words(
            """
            certif test(?:ed|s|ing)?\\b approv prove[nds]?\\b recommend endors accredit licen[sc]
            verif inspect patent award medal prize stud(?:y|ies)\\b research clinical trials?\\b
            """
        )
    ),
    *(
        re.compile(stem)
        for stem in words(
            """
            认证 检测 检验 验证 认可 批准 推荐 专利 (?<![抽中])奖(?![励券]) 代言 临床
            试用 测试 证书 同款 研究 证明 背书 实验
            """
        )
    ),
]
"""What a source must say as well, whichever of them the claim names."""
_DENIED = re.compile(
    r"(?:\b(?:no|not|never|isn't|aren't|wasn't|hasn't|haven't|without|nothing|nobody|none of)\b"
    r"[^.!?]{0,24}|(?:没有?|未|不|无|并非)[^，。！？]{0,6})$"
)


def check_authority(reading: Reading) -> None:
    """Each claim of a test, a certificate, an award or a recommendation against all sources."""
    for _, clause in reading.claims():
        for match in ENDORSED.finditer(clause.text):
            if _DENIED.search(clause.text[: match.start()]) or _said(reading, clause, match):
                continue
            start, end = clause.start + match.start(), clause.start + match.end()
            detail = "no source names such a test, certificate, award or recommendation"
            reading.find("unsupported_claim", detail, start, end, "all sources")


def _said(reading: Reading, clause: Clause, match: re.Match[str]) -> bool:
    cards = reading.cards_at(clause.start + match.start(), clause)
    sources = [s for c in cards for s in c.sources]
    sources += [*reading.general_texts(), *reading.evidence.texts]
    named = [stem for stem in _STEMS if stem.search(match.group())]
    return any(stem.search(s.text) for stem in named for s in sources)
