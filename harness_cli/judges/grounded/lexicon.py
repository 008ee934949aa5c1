"""Words for properties that a reply may claim, in English and Chinese, one concept a line.

Each line reads `concept: English terms; … | 中文词; …`. A term is literal; `*` at its end lets the
word go on. Concepts of one class exclude each other where the class says so.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness_cli.judges.grounded.language import Clause, terms_pattern

_PROPERTIES = """
waterproof: waterproof; water-proof; water resistant; water-resistant; splashproof; splash-proof | 防水; 防泼水
fragrance free: fragrance free; fragrance-free; no fragrance; unscented; without fragrance | 无香精; 不含香精; 无香
alcohol free: alcohol free; alcohol-free; no alcohol; without alcohol | 不含酒精; 无酒精; 0酒精
silicone free: silicone free; silicone-free; no silicone; without silicone | 无硅油; 不含硅油; 无硅
sugar free: sugar free; sugar-free; no added sugar; no sugar; zero sugar; without sugar | 无糖; 不加糖; 零糖; 0糖; 不添加糖; 无蔗糖
low sugar: low sugar; low-sugar; less sugar | 低糖; 少糖
no additives: no additives; additive-free; additive free; no preservatives; preservative-free; nothing added | 无添加; 零添加; 0添加; 无防腐剂; 不含防腐剂
bpa free: bpa free; bpa-free; no bpa | 不含双酚a; 无双酚a; 不含bpa
gluten free: gluten free; gluten-free | 无麸质
vegan: vegan; plant-based; vegetarian | 纯素; 素食
organic: organic; organically | 有机
all natural: all natural; all-natural; 100% natural; purely natural; pure natural | 纯天然; 全天然; 天然无
hypoallergenic: hypoallergenic; allergy-free; won't cause allerg*; no allerg* | 低敏; 不会过敏; 零过敏; 不过敏; 防过敏
clinically tested: clinically proven; clinically tested; dermatologist*; doctor recommended; recommended by doctors; doctor-recommended; lab tested; lab-tested; clinical trial* | 临床; 皮肤科; 医生推荐; 医院; 实验证明; 医美级
certified: fda*; certified; certification; certificate; iso*; ce mark; gold medal; award-winning; award | 认证; 检测报告; 质检报告; 获奖; 金奖
patented: patent* | 专利
cures: cure; cures; curing; heals; heal; treats; treatment for; medical grade; medicinal; therapeutic | 治疗; 治愈; 根治; 疗效; 药效; 治好; 医用级; 医用; 药用
anti-ageing: anti-aging; anti-ageing; anti-wrinkle; wrinkles; younger; fine lines; firming | 抗衰*; 抗老; 去皱; 祛皱; 抗皱纹; 皱纹; 年轻十岁; 细纹; 紧致
whitening: whitening; whiten*; brightening; brighten*; lightens; fades dark spots; dark spots | 美白; 变白; 提亮; 淡斑; 祛斑
acne: acne; pimples; breakouts; blackheads | 祛痘; 痘痘; 去痘; 黑头
slimming: slimming; lose weight; weight loss; burns fat; burn fat; fat-burning; detox* | 减肥; 瘦身; 燃脂; 瘦脸; 排毒
hair growth: hair growth; regrow*; hair loss; stops hair | 生发; 防脱; 脱发
pain relief: pain relief; relieves pain; back pain; neck pain; cervical | 止痛; 缓解疼痛; 颈椎病; 腰痛; 颈椎
sleep: helps you sleep; better sleep; insomnia | 助眠; 失眠; 改善睡眠
immunity: immun* | 免疫力; 增强体质
machine washable: machine wash*; machine-wash*; washing machine; in the machine; throw it in the wash | 机洗; 洗衣机
hand wash: hand wash*; hand-wash*; wash by hand | 手洗
dry clean: dry clean*; dry-clean* | 干洗
tumble dry: tumble dry*; tumble-dry*; dryer safe; in the dryer | 烘干
dishwasher safe: dishwasher* | 洗碗机
microwave safe: microwave* | 微波炉
oven safe: oven safe; oven-safe; in the oven | 进烤箱; 烤箱可用
induction: induction | 电磁炉
wireless charging: wireless charg*; charges wirelessly; charge wirelessly; wirelessly | 无线充电; 无线充
fast charging: fast charg*; quick charg*; fast-charg* | 快充; 闪充
noise cancelling: noise cancel*; noise-cancel*; anc | 降噪
bluetooth: bluetooth | 蓝牙
gps: gps | gps; 定位
nfc: nfc | nfc
heart rate: heart rate; heart-rate | 心率
blood pressure: blood pressure | 血压
blood oxygen: blood oxygen; spo2 | 血氧
ecg: ecg | 心电图
phone calls: make calls; take calls; answer calls; phone calls | 打电话; 接电话; 通话
wifi: wifi; wi-fi | wifi; 无线网
usb-c: usb-c; type-c; usb c | usb-c; type-c
voice control: voice control; voice assistant; alexa; siri | 语音控制; 语音助手
app: companion app; phone app; app control | 手机app; app控制
touch screen: touchscreen; touch screen | 触屏; 触摸屏
4k: 4k | 4k
solar: solar | 太阳能
non-stick: non-stick; nonstick; non stick | 不粘
leakproof: leakproof; leak-proof; leak proof; won't leak; doesn't leak; no leaks | 防漏; 不漏; 不会漏
windproof: windproof; wind-proof | 防风; 挡风
breathable: breathable; breathes | 透气
wrinkle free: wrinkle-free; wrinkle free; no ironing; doesn't wrinkle; won't wrinkle | 免烫; 不皱; 不会皱; 不起皱
no shrink: won't shrink; doesn't shrink; no shrinking; never shrinks; pre-shrunk | 不缩水; 不会缩水
no fade: won't fade; doesn't fade; never fades; colourfast; colorfast; no fading | 不掉色; 不褪色; 不会掉色; 不会褪色
no pilling: no pilling; won't pill; doesn't pill | 不起球; 不会起球
antibacterial: antibacterial; anti-bacterial; kills germs; kills bacteria; kills 99* | 抗菌; 杀菌; 除菌
handmade: handmade; hand-made; handcrafted; hand-crafted | 手工; 纯手工
imported: imported | 进口; 原装进口
genuine leather: genuine leather; real leather; full-grain leather | 真皮; 头层牛皮
limited edition: limited edition; limited-edition | 限量; 限定版; 联名
food grade: food grade; food-grade | 食品级
eco-friendly: eco-friendly; eco friendly; biodegradable; recycled | 环保; 可降解
foldable: foldable; folds; collapsible | 折叠; 可折
refill: refill* | 替换装; 替换芯
plane: on a plane; on planes; on the plane; carry-on; cabin | 上飞机; 登机; 飞机
scratch proof: scratch-proof; scratchproof; scratch resistant; scratch-resistant | 防刮; 耐刮
unbreakable: unbreakable; shatterproof; indestructible; drop-proof; shockproof; never breaks; won't break | 摔不坏; 摔不烂; 防摔; 不会坏
self-cleaning: self-cleaning; self cleaning | 自清洁
celebrity: celebrity; celebrities; endorsed by | 明星同款; 代言; 网红
"""
_GUARDED = """
pregnancy: pregnan*; expecting mothers; expectant; breastfeeding; nursing mothers | 孕妇; 怀孕; 孕期; 哺乳期
children: kids; children; babies; infants; newborns; toddlers; baby's | 小孩; 孩子; 儿童; 宝宝; 婴儿; 新生儿
sensitive skin: sensitive skin; sensitive | 敏感肌; 敏感皮
oily skin: oily skin; oily | 油皮; 油性
dry skin: dry skin | 干皮; 干性
diabetics: diabet* | 糖尿病; 血糖高
"""
_MATERIALS = """
cotton: cotton | 棉; 纯棉; 全棉
silk: silk | 真丝; 桑蚕丝; 蚕丝
wool: wool; merino | 羊毛; 美利奴
cashmere: cashmere | 羊绒
linen: linen; flax | 亚麻
polyester: polyester | 涤纶; 聚酯
nylon: nylon | 锦纶; 尼龙
leather: leather; cowhide | 真皮; 牛皮
duck down: duck down | 鸭绒
goose down: goose down | 鹅绒
memory foam: memory foam | 记忆棉
latex: latex | 乳胶
bamboo: bamboo | 竹
steel: steel; stainless | 不锈钢
titanium: titanium | 钛
aluminium: aluminium; aluminum | 铝合金; 铝
cast iron: cast iron | 铸铁
plastic: plastic | 塑料
glass: glass; borosilicate | 玻璃
ceramic: ceramic | 陶瓷
silicone: silicone | 硅胶
wood: wood; wooden; oak; walnut wood | 实木; 木头; 橡木; 胡桃木
carbon fibre: carbon fibre; carbon fiber | 碳纤维
acrylic: acrylic | 腈纶
tpe: tpe | tpe
ppsu: ppsu | ppsu
"""
_COLOURS = """
white: white; ivory | 白色; 象牙白
black: black | 黑色
grey: grey; gray | 灰色
red: red; burgundy; brick red | 红色; 酒红; 砖红
blue: blue; navy; mist blue | 蓝色; 藏青; 藏蓝; 雾蓝
green: green; olive; mint | 绿色; 橄榄; 薄荷绿; 森林绿
pink: pink; rose | 粉色; 玫瑰
purple: purple; lilac; violet | 紫色
yellow: yellow | 黄色
orange: orange | 橙色; 橘色
brown: brown; camel; coffee-coloured | 棕色; 驼色; 咖色; 咖啡色
beige: beige; cream; oat; oatmeal; off-white; khaki | 米色; 米白; 奶油; 燕麦; 卡其
silver: silver | 银色
gold: gold; golden; rose gold | 金色; 玫瑰金
"""


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a concept in a clause."""

    concept: str
    positive: bool
    start: int
    end: int


class Lexicon:
    """Concepts of one class, found in clauses by one pattern."""

    def __init__(self, lines: str) -> None:
        self._concept: dict[str, str] = {}
        for line in lines.strip().splitlines():
            name, _, terms = line.partition(": ")
            for term in terms.replace("|", ";").split(";"):
                self._concept[term.strip()] = name
        open_ended = [t[:-1] for t in self._concept if t.endswith("*")]
        self._stems = {t: self._concept[t + "*"] for t in open_ended}
        self._pattern = terms_pattern([t for t in self._concept if not t.endswith("*")])
        stems = "|".join(re.escape(t) for t in sorted(open_ended, key=len, reverse=True))
        self._stem_pattern = re.compile(rf"(?<![a-z0-9])(?:{stems})" if stems else r"(?!)")

    def uses(self, clause: Clause) -> Iterator[Use]:
        """Every use in a clause, with its polarity; places are those of the whole text."""
        text = clause.text
        for match in self._pattern.finditer(text):
            yield self._use(clause, self._named(match.group()), match)
        for match in self._stem_pattern.finditer(text):
            yield self._use(clause, self._stems[match.group()], match)

    def _named(self, term: str) -> str:
        for shorter in (term, term[:-1], term[:-2]):
            if shorter in self._concept:
                return self._concept[shorter]
        return term

    @staticmethod
    def _use(clause: Clause, concept: str, match: re.Match[str]) -> Use:
        negative = _NEGATED.search(clause.text, max(0, match.start() - 24), match.start())
        negative = negative or _NEGATED_AFTER.match(clause.text, match.end())
        start, end = clause.start + match.start(), clause.start + match.end()
        return Use(concept, negative is None, start, end)


_NEGATED = re.compile(
    r"(?:\b(?:not|no|isn't|aren't|doesn't|don't|won't|can't|cannot|never|without|neither|nor|non|avoid|wasn't)"
    r"\b[^,.]{0,18}|(?:不|没有?|无|非|别|勿|禁止|避免|切勿)[^，。]{0,5})$"
)
_NEGATED_AFTER = re.compile(
    r"\s*(?:: no\b|is not|isn't|not (?:supported|allowed|included|recommended)|不行|不可以|不能|不支持|不建议)"
)

PROPERTIES = Lexicon(_PROPERTIES)
GUARDED = Lexicon(_GUARDED)
MATERIALS = Lexicon(_MATERIALS)
COLOURS = Lexicon(_COLOURS)

ASSURED = re.compile(
    r"\b(?:safe|fine|ok|okay|suitable|suits?|good|great|perfect|can use|can eat|can wear|gentle|ideal|works? (?:well )?"
    r"for|made for|designed for|no problem|worry)\b|可以|能用|能吃|放心|适合|安全|没问题|可用|都能|专为|友好|不刺激"
)
"""What turns a word for a group of people into the claim that the product suits them."""
ADVICE = re.compile(
    r"\b(?:ask|consult|check with|talk to|doctor|patch test|physician|pediatrician)\b|医生|咨询|先问|测试|试用"
)
MADE_OF = re.compile(
    r"\b(?:made (?:of|from|with)|material|fabric|pure|100%)\b|材质|面料|材料|做的|制成|纯"
)
