"""Speech acts of a reply in English and Chinese: what it does beside stating facts."""

import re

from harness_cli.judges.grounded.language import fold, phrases

_DECLINE = phrases(
    r"""
    \b(?:i|we)(?:'m| am|'re| are)? (?:really |afraid i )?(?:can't|cannot|can not|could not\
    |couldn't|won't|will not|unable to|not able to|not allowed to|don't|do not|'d rather not\
    |would rather not|not going to)\
    \ ?(?:be able to |really )?(?:do|help|share|discuss|talk|give|offer|provide|answer|comment\
    |say|tell|reveal|promise|guarantee|make|take|send|show|follow|change|recommend|speak|go\
    |get into|arrange|process|advise|engage|respond|pass|hand|agree|read|print|disclose|support\
    |confirm|assist|ignore|pretend|place|look|access)
    \b(?:can't|cannot|unable to|not able to|won't be able to) (?:help|do that|share|discuss\
    |assist|talk about|answer|give|offer|provide|promise|comment|go there)
    not something (?:i|we) can|isn't something (?:i|we)|that's not (?:something|possible|for me)
    \bi must decline|no can do|\bi have to pass|\bi'll pass|\blet's not\b|\bnope\b
    (?:against|outside) (?:the |our |my )?(?:rules|policy|scope)|not (?:my area|my place)
    not comfortable|not appropriate|stays? private|(?:i|we) only (?:talk|cover|answer|do)
    stick to (?:the|our)|\bi'm (?:only |just )?here for (?:the )?(?:products|shopping|shop)
    \blet's (?:keep|stick|stay|get back|focus|talk about the)|beyond what i|off the table
    \b(?:i|we)(?:'d| would) rather (?:keep|stick|stay|talk|not)|\b(?:i|we) keep [^.!?]{0,20}\bto\b
    outside (?:of )?what i|off[- ]limits|not (?:possible|available) (?:for|here)
    \bno,? sorry|sorry,? (?:but )?(?:no\b|not\b|that|this|i can|we can)
    (?:不能|无法|没法|没办法|不可以|不便|不太方便|不方便|不好|不会|不支持|不接受|不参与)\
    [^，。！？!?\n]{0,6}?(?:说|聊|谈|回答|答|提供|透露|讨论|帮|办|做|给|承诺|保证|答应|评价|评论\
    |操作|处理|满足|执行|写|查|接受|公开|分享|支持|议论|涉及|加|泄露|告诉)
    不行(?:哦|哈|呢|的|啊|呀)|这(?:个|可|我)?(?:可)?不行|做不到|办不到|不合适|不允许|违规
    只(?:聊|能聊|回答|能回答|介绍|负责)|帮不了|帮不上|做不了|给不了|管不了|聊不了|不提供|不讨论
    不聊|不回答|回答不了|答不了|不谈|不透露|不太方便|不参与|咱们?还是(?:聊|看|说)
    我们还是(?:聊|看|说)|恕
    """
)
_UNKNOWN = phrases(
    r"""
    (?:don't|do not|doesn't|does not|didn't) (?:actually )?(?:have|know|see|list|say|mention\
    |specify|show|find|tell|give|state)\b|(?:haven't|hasn't|have not) (?:got|been|any)\b
    \bno (?:information|info|details?|data|record|word|mention|note)\b
    not (?:sure|certain|listed|specified|stated|mentioned|shown|given|on the|in the|clear\
    |available|noted)
    isn't (?:listed|specified|stated|mentioned|on|in|clear|given|available|something i have)
    aren't (?:listed|given)
    (?:can't|cannot|couldn't|unable to) (?:confirm|say|tell|find|see|check|verify)
    (?:would|i'd|i'll) (?:need|have) to (?:check|confirm|ask)|let me (?:check|confirm)
    nothing (?:listed|about|on)|unknown|beyond what (?:the card|i have|is listed)
    不清楚|不知道|不确定|不太清楚|不了解|不好说|说不准|手头没|没有?看到|拿不准
    没有?(?:相关|这个|这方面|这项|具体|找到|查到|写|标|说明|提到|注明|标注|写明|提供|介绍|显示\
    |资料|信息)
    (?:信息|资料|数据|内容|答案|说明)[^，。！？!?\n]{0,6}(?:没有|没写|查不到|看不到)
    暂时没|暂无|查不到|找不到|未(?:标注|注明|提及|说明|提供|写)
    (?:无法|没法|不能|不敢)(?:确认|确定|肯定)|确认一下|核实一下|页面(?:上)?没
    """
)
_ASK_WORD = phrases(
    r"""
    \bwhich\b|\bwhat\b|\bcould you\b|\bcan you\b|\bwould you\b|\bdo you mean\b|\bdo you want the\b
    \bare you (?:asking|looking|referring|talking|after|thinking)|\btell me\b|\blet me know\b
    \bsay (?:the|which)\b|\bplease (?:tell|share|give|send|type)|\blink number|\bdid you mean
    \bor the\b
    \bmore specific|\bhow (?:tall|much do you weigh|old|many)\b|\bwhose\b|\bfor (?:who|whom|what)\b
    \byour (?:height|weight|skin type|size|budget|order|age)\b
    哪|什么|几号|多少|具体|请问|方便说|还是|指的是|是指|说的是|问的是|想问|想了解|多高|多重|身高
    体重
    肤质|预算|尺码|尺寸|颜色|几码|链接号|多大
    """
)
_ASK_END = phrases(r"""[?？]|(?:吗|呢|呀|啊|么|哈|哦|吧)[~～。!！]*$""")
_TELL = phrases(
    r"""
    \b(?:tell me|let me know|please (?:tell|share|give|send|type)|just (?:say|type|send|drop|give)\
    |drop (?:me )?(?:the|a)|give me (?:the|a)|type|comment|send (?:me )?(?:the|a)
    say)\b[^.!?\n]{0,40}\
    \b(?:which|what|link|number|product|item|size|model|one|name|more|height|weight)\b
    not (?:quite )?sure (?:which|what)|which (?:one|link|product|item) (?:you|do you|is it|are you)
    (?:告诉我|说一下|说下|打一下|发一下|扣一下|报一下|发个|打个|说个|报个|扣个|留个
    打出)[^。！？!?\n]{0,16}
    (?:麻烦|请|您|你)[^。！？!?\n]{0,8}(?:说|告诉|发|打|报)(?:一下|下|个|我|清楚
    具体)[^。！？!?\n]{0,16}
    (?:是|指|说|问|想|要|看)[^。！？!?\n]{0,6}哪(?:一)?(?:款|个|件|条|号|种|支|双|套|瓶|只|台)
    哪(?:一)?(?:款|个|件|条|号|种|支|双|套)(?:产品|商品|链接|宝贝)?(?:呢|呀|啊|哦|哈|$)
    """
)
_GREET = phrases(
    r"""
    \bwelcome\b(?! (?:back to the product|to return))|\bhi\b|\bhello\b|\bhey\b|\bhiya\b
    \b(?:good )?(?:evening|morning|afternoon)[,!.]|\bgood (?:evening|morning|afternoon)\b
    \b(?:nice|good|great|lovely) to (?:see|meet|have)|\bglad (?:you're here|to see)
    \bglad you (?:came|joined|could|made)|\bmade it\b|\bcome (?:on )?in\b|\bsettle in\b
    \bthanks for (?:joining|coming|stopping|dropping|being here)|\bmake yourself at home
    欢迎|你好|您好|大家好|晚上好|早上好|下午好|中午好|嗨|哈喽|来啦|来了|新朋友|老朋友|进来坐
    """
)
_THANKS = phrases(
    r"""
    \bthank|\bthanks\b|appreciate|you(?:'re| are) (?:very |most |so |more than )?welcome
    my pleasure|glad (?:you|it|to hear)
    happy (?:you|to hear|it)|so kind|means a lot|谢谢|感谢|多谢|谢啦|不客气|开心|高兴|支持
    """
)
_APOLOGY = phrases(
    r"""
    \bsorry\b|apolog|my bad|regret|抱歉|对不起|不好意思|见谅|很遗憾|让(?:您|你)?久等
    给您添麻烦
    """
)
_MOVED = phrases(
    r"""
    (?:moved?|moving|brought|bringing|bring|switch(?:ed|ing)?|put|putting|set|turn(?:ed|ing)?
    pulled\
    |jump(?:ed|ing)?|skip(?:ped|ping)?|goes?|going|show(?:ing)?|present(?:ed|ing)?|cover(?:ing)?\
    |talk(?:ing)?|go over|walk you through)\b[^.!?\n]{0,60}\b(?:next|now|up|first|ahead|front
    forward|straight\
    |over to|to (?:link|no|number)|about|link|explain|present|through)
    \b(?:up next|coming (?:right )?up|is next|comes next|next up|right away)\b
    \blink \d+ (?:is )?(?:coming )?(?:up )?next\b|\bon to (?:link )?\d+
    \bhere comes\b
    \blet's (?:look|jump|move|turn|get|go|switch)\b[^.!?\n]{0,12}\b(?:at|to|into|on|over)
    (?:来|先来|一起)(?:看|讲|说)(?:一下|下|看)?[^。！？!?\n]{0,6}(?:号|链接|款)
    (?:马上|这就|现在|立刻|接下来|下一个|先|给(?:您|你|大家)|已经?|帮(?:您|你)
    把)[^。！？!?\n]{0,16}\
    (?:讲|介绍|展示|看|安排|提前|切|换到|移|调到|调整|排|上)
    安排上|安排好|调整好|提到前面|提前了|排到
    """
)
_IMAGE = phrases(
    r"""
    \b(?:picture|photo|image|close-?up|on (?:the )?screen|detail shot|look at the screen
    shown here)\b|图片|图|照片|屏幕|实拍|细节图|上图|看一下画面|放大
    """
)


def declines(text: str) -> bool:
    """Whether the reply says no to what was asked."""
    return _DECLINE.search(fold(text)) is not None


def admits_ignorance(text: str) -> bool:
    """Whether the reply says that it does not have the information."""
    return _UNKNOWN.search(fold(text)) is not None


def asks_back(text: str) -> bool:
    """Whether the reply asks the viewer for what is missing: a sentence that asks for a thing."""
    folded = fold(text).strip()
    if _TELL.search(folded):
        return True
    sentences = re.findall(r"[^。！!.？?\n]+[。！!.？?]?", folded)
    return any(_ASK_END.search(s.strip()) and _ASK_WORD.search(s) for s in sentences)


def greets(text: str) -> bool:
    """Whether the reply welcomes."""
    return _GREET.search(fold(text)) is not None


def thanks(text: str) -> bool:
    """Whether the reply thanks, or takes thanks."""
    return _THANKS.search(fold(text)) is not None


def apologises(text: str) -> bool:
    """Whether the reply is sorry."""
    return _APOLOGY.search(fold(text)) is not None


def confirms_order(text: str) -> bool:
    """Whether a sentence says that a product is presented now or next, and does not decline."""
    folded = fold(text)
    return any(_MOVED.search(folded[s:e]) for s, e in _not_declining(folded))


def presented(folded: str) -> list[tuple[int, int]]:
    """Where the sentences stand that present a product or show its picture; denials left out."""
    found = [(s, e) for s, e in _not_declining(folded) if not _DENIED.search(folded[s:e])]
    return [(s, e) for s, e in found if any(p.search(folded[s:e]) for p in (_MOVED, _IMAGE))]


_DENIED = re.compile(r"\b(?:not|never|cannot)\b|n't\b|不|没|别")


def _not_declining(folded: str) -> list[tuple[int, int]]:
    sentences = [m.span() for m in re.finditer(r"[^。！!.？?\n]+", folded)]
    return [(s, e) for s, e in sentences if not _DECLINE.search(folded[s:e])]


_ABOUT_ME = phrases(
    r"""
    \b(?:are|r) (?:you|u|ya)\b[^.!?]{0,24}\b(?:real|human|robot|bot|ai|person|machine|alive|avatar
    program|virtual)\b
    \b(?:is|am i|talking|speaking|chatting)\b[^.!?]{0,20}\b(?:real person|human|robot|bot|ai\
    |machine)\b
    \bor (?:a |an )?(?:real )?(?:person|human|robot|bot|machine)\b
    真人|机器|人工智能|数字人|虚拟|是不是人|是人吗|活人|(?<![a-z])ai(?![a-z])
    \b(?:are|r|were) (?:you|u)\b(?! (?:selling|sold|out|open|closed|shipping|sure|offering|having))
    \b(?:do|did|have|can) (?:you|u)\b[^.!?]{0,12}\b(?:yourself|personally|ever|use|used|tried|try
    wear|like|love|eat|drink|sleep|feel|live|get tired)\b
    \bhow (?:old|tall) are you
    \byour (?:own|skin|hair|name|age|job|family|husband|wife|boyfriend|kids|real)\b
    ^\W*(?:a )?(?:ro)?(?:bot|human|real|ai|tired|hungry|sleepy)\W*$
    (?:主播|你|您)(?:自己|本人|平时|也|是不是|累|饿|困|几岁|多大|结婚|站|住|家|用过|试过|吃过|穿过)
    """
)


def asks_about_host(text: str) -> bool:
    """Whether a viewer wants to know what the host is, or about its life."""
    return _ABOUT_ME.search(fold(text)) is not None


def shows_image(text: str) -> bool:
    """Whether the reply points at a picture."""
    return _IMAGE.search(fold(text)) is not None


def chats(text: str) -> bool:
    """Whether the reply engages: something is said that neither declines nor pleads ignorance."""
    folded = fold(text)
    words = len(re.findall(r"[a-z0-9']+|[\u3400-\u9fff]", folded))
    return words >= 3 and not _UNKNOWN.search(folded) and not _DECLINE.search(folded)
