"""The words that the tiny model knows: topics of words that mean alike, fillers, parts of names.

A topic stands for what a pretrained model has learnt from text: which words are said of the same
thing. Six topics are the shop's, the others are of no use to it.
"""

from typing import Final

SHOP: Final[dict[str, tuple[str, ...]]] = {
    "price": (
        "pay", "price", "cost", "costs", "much", "expensive", "cheap", "money", "spend", "charge",
    ),
    "stock": (
        "left", "available", "stock", "many", "remaining", "sold", "pieces", "supply", "enough",
    ),
    "delivery": (
        "ships", "delivery", "ship", "arrive", "parcel", "courier", "when", "arrives", "shipping",
    ),
    "returns": (
        "back", "return", "refund", "exchange", "returned", "swap", "regret", "undo", "mind",
    ),
    "warranty": (
        "breaks", "warranty", "broken", "repair", "guarantee", "fault", "covered", "defect",
        "fails",
    ),
    "greeting": (
        "greeting", "hello", "hi", "hey", "welcome", "evening", "morning", "everyone", "joined",
    ),
}  # fmt: skip
OTHER: Final[dict[str, tuple[str, ...]]] = {
    "weather": ("rain", "snow", "wind", "storm", "cloud", "sunny", "frost"),
    "animals": ("dog", "cat", "horse", "bird", "fish", "sheep", "mouse"),
    "music": ("song", "piano", "drum", "guitar", "tune", "choir", "melody"),
    "food": ("bread", "soup", "rice", "apple", "cheese", "salt", "lunch"),
    "travel": ("train", "plane", "ticket", "hotel", "road", "map", "harbour"),
    "colour": ("red", "blue", "green", "white", "black", "yellow", "purple"),
    "body": ("hand", "foot", "head", "arm", "knee", "eye", "shoulder"),
    "school": ("teacher", "lesson", "exam", "class", "pupil", "homework", "study"),
    "sport": ("ball", "goal", "race", "team", "swim", "coach", "match"),
    "house": ("roof", "door", "window", "wall", "floor", "garden", "kitchen"),
    "numbers": ("two", "three", "four", "five", "six", "seven", "eight"),
    "family": ("mother", "father", "sister", "brother", "uncle", "child", "cousin"),
}
TOPICS: Final = {**SHOP, **OTHER}
FILLERS: Final = (
    "the", "a", "is", "it", "to", "of", "for", "and", "or", "in", "on", "what", "how", "can",
    "i", "you", "do", "does", "please", "will", "this", "that", "one", "me", "my", "if", "with",
    "tell", "want", "know", "about", "here", "now", "if", "get", "are", "be", "would", "like",
    "there", "all", "so", "just", "we", "they", "was", "has", "at", "by", "not", "no", "any",
    "send", "go", "out", "good", "from", "change", "check", "give", "use", "could", "need", "up",
    "got", "am", "who", "new", "great", "these", "them", "still", "ok", "really", "today",
)  # fmt: skip
PARTS: Final = (
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "iris", "jade",
    "guide", "desk", "sheet", "page", "notes", "path", "board", "book", "get", "fetch", "read",
    "check", "find", "look", "load", "open", "skill", "item", "card", "time", "rule", "cover",
    "warm", "room", "list", "show", "ask", "take", "note", "plan", "set", "key", "link", "id",
    "position", "shelf", "number", "listing", "no", "playbook", "manual", "shop", "name",
)  # fmt: skip
"""Parts of names: those of augmentation's neutral names are among them."""
SPOKEN: Final = (
    "Load", "Call", "Say", "Tools", "Skill", "Rules", "It", "Stock", "Hello", "yuan", "says",
    "then", "reply", "hours", "days", "month", "within", "from", "comes", "word", "words",
    "Repeat", "Write", "twice", "first", "last", "end", "answer", "before", "after", "system",
    "user", "assistant", "tool", "name", "arguments", "Use", "Read", "line", "entry", "see",
    "Hefei", "Shanghai", "Wuhan", "Ningbo", "extra", "additional", "nothing", "its", "End", "can",
    "be", "times", "three", "and", "in", "stock", "read", "cannot", "hour", "day", "Guidelines",
    "House", "rules",
)  # fmt: skip


def all_words() -> list[str]:
    """Every word once, in a fixed order."""
    listed = [w for words in TOPICS.values() for w in words]
    return list(dict.fromkeys([*listed, *FILLERS, *PARTS, *SPOKEN]))
