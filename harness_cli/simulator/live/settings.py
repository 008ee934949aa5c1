"""What a live room is like: settings, as an environment or a session of the sandbox takes them."""

from typing import Annotated

import msgspec

from harness_cli.errors import UsageError
from harness_cli.records.bounds import AtLeastOne, NotNegative, Share
from harness_cli.simulator.live.arrivals import Arrivals
from harness_cli.simulator.scenarios.items import CHINESE, MIX, NOISY

KINDS = {
    "product-qa": "product_inquiry",
    "faq": "product_inquiry",
    "clarification": "product_inquiry",
    "chat": "chat",
    "promotion": "purchase_intent",
    "presentation-order": "purchase_intent",
    "after-sales": "after_sales",
    "refusal": "off_limits",
}
"""Category of a scenario → the kind of comment it is (TR §3.3 (1)); `mixed` holds two intents."""
Rate = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Faults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Share of tool calls that fail, by kind of error; the others reach the replica.

    **Choice** where nothing was measured; `faults.observed` takes them from recorded rollouts.
    """

    timeout: Rate = 0.02
    malformed: Rate = 0.01
    denied: Rate = 0.01

    @property
    def total(self) -> float:
        """Share of calls that fail."""
        return self.timeout + self.malformed + self.denied


class Actions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What viewers do beside commenting (**choice**: one order for seven who join)."""

    per_s: NotNegative = 0.1
    join: NotNegative = 0.5
    like: NotNegative = 0.3
    add_to_cart: NotNegative = 0.13
    order: NotNegative = 0.07


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of live rooms. Phrasings are always those of the dev families."""

    schema: int = 1
    room: str | None = None
    """Id of a room of the catalogue; one is drawn where none is named."""
    session_s: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 900.0
    tick_s: Annotated[float, msgspec.Meta(ge=1)] = 15.0
    """Facts of the room move this often: comments that share a tick are answered from one truth."""
    requests: AtLeastOne = 1
    """Requests of one episode."""
    turns: AtLeastOne = 1
    """Turns of one viewer's dialogue, the first included."""
    arrivals: Arrivals = Arrivals()
    actions: Actions = Actions()
    faults: Faults = Faults()
    mix: dict[str, float] = msgspec.field(default_factory=lambda: dict(MIX))
    """Category of scenarios → weight."""
    mixed: Share = 0.08
    """Share of comments with two intents."""
    noisy: Share = NOISY
    chinese: Share = CHINESE
    windows: Share = 0.5
    """Share of the offers of the day that open or close during the session."""
    augmented: Share = 0.0
    """Share of groups that run under an augmented harness state."""
    rounds: AtLeastOne | None = None
    """Round limit of a rollout; the profile's where it is None."""


def checked(settings: Settings) -> Settings:
    """The settings, or `UsageError` for what each field alone does not show."""
    if settings.schema != 1:
        raise UsageError(f"schema {settings.schema} of settings is not known", hint="this is 1")
    unknown = sorted(settings.mix.keys() - KINDS.keys())
    if unknown:
        raise UsageError(
            f"`mix` names no category `{unknown[0]}`", hint=f"known: {', '.join(KINDS)}"
        )
    if any(weight < 0 for weight in settings.mix.values()) or not sum(settings.mix.values()):
        raise UsageError("`mix` needs weights of 0 or more, one of them above 0")
    if settings.faults.total > 1:
        raise UsageError("`faults` are shares of one whole: together at most 1")
    if settings.tick_s > settings.session_s:
        raise UsageError("`tick_s` is longer than the session")
    return settings
