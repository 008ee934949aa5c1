import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chat_endpoint import ASKED, Answer, Endpoint, serving

from harness_cli.models.base import Deadline
from harness_cli.models.open import open_policy
from harness_cli.records.chat import ChatReply, ChatRequest
from harness_cli.records.config import PolicyConfig

Asks = Callable[..., tuple[ChatReply, Endpoint]]


@pytest.fixture(params=["lean", "openai"])
def transport(request: pytest.FixtureRequest) -> str:
    """Both clients pass one suite."""
    return str(request.param)


@pytest.fixture
def settings(transport: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return {"kind": "openai", "model": "m", "transport": transport}


@pytest.fixture
def ask(settings: dict[str, Any]) -> Asks:
    """Ask an endpoint that gives `answers` once: (reply, the endpoint with what it was sent)."""

    def go(
        *answers: Answer,
        request: ChatRequest = ASKED,
        deadline: float | None = 20.0,
        seen: list[Endpoint] | None = None,
        **more: Any,
    ) -> tuple[ChatReply, Endpoint]:
        async def run() -> tuple[ChatReply, Endpoint]:
            async with serving(list(answers)) as endpoint:
                if seen is not None:
                    seen.append(endpoint)
                config = PolicyConfig(**{"base_url": endpoint.url, **settings, **more})
                policy = open_policy("p", config, root=Path())
                try:
                    return await policy.complete(request, Deadline.within(deadline)), endpoint
                finally:
                    await policy.close()

        return asyncio.run(run())

    return go
