"""Paraphrases that a language model wrote: data, checked by rule and by a judge, or not used."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness_cli.augmentation.validate_skills import Form, form_of


@dataclass(frozen=True, slots=True)
class Book:
    """Texts of the base and what else they may be said in."""

    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    """`asked`, `kept`, and for each reason how many were refused."""

    @property
    def originals(self) -> dict[Form, Form]:
        """Canonical form of a paraphrase → that of the text it stands for."""
        return {
            form_of(said, {}): form_of(text, {})
            for text, all_ in self.texts.items()
            for said in all_
        }
