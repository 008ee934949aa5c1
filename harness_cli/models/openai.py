"""The second client: the `openai` package carries the bytes, everything else is ours.

It shares retries, parsing and limits with the default transport, so the two differ in nothing but
how a request travels; whoever mistrusts one can set `transport: openai`.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import httpx2
import openai

from harness_cli.errors import ProviderError
from harness_cli.models.client import DEFAULT_URL, ClientPolicy
from harness_cli.models.provider_errors import stalled, status_error, transport
from harness_cli.models.stream import Response
from harness_cli.records.config import PolicyConfig

_CONNECT_S: Final = 10.0


class OpenAIPolicy(ClientPolicy):
    """Chat completions through `openai.AsyncOpenAI`, with its own retries off."""

    def __init__(self, name: str, config: PolicyConfig, *, seed: int = 0) -> None:
        super().__init__(name, config, seed=seed)
        omitted: dict[str, Any] = {}
        if not self.key:
            omitted["Authorization"] = openai.omit
        if self.url != DEFAULT_URL:
            # Read from the environment by the package; no business of another server's.
            omitted |= {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}
        self._headers = omitted
        self._client = openai.AsyncOpenAI(
            api_key=self.key or "none",
            base_url=self.url,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    def _post(self, body: dict[str, Any], seconds: float) -> AbstractAsyncContextManager[Response]:
        return self._exchange(body, seconds)

    @asynccontextmanager
    async def _exchange(self, body: dict[str, Any], seconds: float) -> AsyncIterator[Response]:
        stall_s = self.stall_s()
        limits = openai.Timeout(seconds, connect=min(_CONNECT_S, seconds), read=stall_s)
        create = self._client.chat.completions.with_streaming_response.create
        try:
            async with create(**body, timeout=limits, extra_headers=self._headers) as response:
                yield _SdkResponse(response.http_response, stall_s)
        except openai.APIStatusError as exc:
            headers = {k.lower(): v for k, v in exc.response.headers.items()}
            raise status_error(exc.status_code, headers, exc.response.content) from exc
        except openai.APITimeoutError as exc:
            raise _late(exc.__cause__, stall_s) from exc
        except openai.APIConnectionError as exc:
            cause = exc.__cause__ or exc
            raise transport(f"the connection failed: {type(cause).__name__}: {cause}") from exc

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()


class _SdkResponse:
    """The package's answer as bytes."""

    def __init__(self, response: httpx2.Response, stall_s: float | None) -> None:
        self._stall_s = stall_s
        self._bytes = response.aiter_bytes()
        self.status = response.status_code
        self.headers = {k.lower(): v for k, v in response.headers.items()}

    complete = False  # only reading on tells

    async def read(self) -> bytes:
        try:
            return await anext(self._bytes, b"")
        except httpx2.TimeoutException as exc:
            raise _late(exc, self._stall_s) from exc
        except (httpx2.HTTPError, httpx2.StreamError) as exc:
            raise transport(
                f"the connection was cut before the answer's end: {type(exc).__name__}"
            ) from exc


def _late(cause: BaseException | None, stall_s: float | None) -> ProviderError:
    if isinstance(cause, httpx2.ReadTimeout) and stall_s is not None:
        return stalled(stall_s)
    return ProviderError.of("timeout", "no connection in time", retryable=True)
