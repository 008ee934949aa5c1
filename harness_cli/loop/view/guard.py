"""Who may ask: this machine's own browser, by the address that `harness view` printed.

The token in the path is the key. Names other than this machine's own are refused (DNS rebinding),
and so is whatever a page of another origin sends, whether it knows the token or not.
"""

import secrets
from dataclasses import dataclass, field

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

HOSTS = ("127.0.0.1", "localhost")
HEADERS = {
    "Cache-Control": "no-store",
    # `no-referrer` would make browsers send `Origin: null` with a form of ours.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
FRAMES = "frame-ancestors 'none'"
"""The part of a page's content security policy that only a header can state."""


def new_token() -> str:
    """192 random bits, as they may stand in a path."""
    return secrets.token_urlsafe(24)


@dataclass(slots=True)
class Guard:
    """The check in front of every page, sub-applications included."""

    token: str
    port: int = 0
    """Known once the server listens."""
    hosts: tuple[str, ...] = field(default=HOSTS)

    def names(self) -> set[str]:
        """`Host` headers that mean this server."""
        return {f"{host}:{self.port}" for host in self.hosts}

    def refusal(self, request: web.Request) -> web.Response | None:
        """Why a request is not answered; None when it is."""
        if request.host not in self.names():
            return _plain(403, f"this server is not `{request.host}`")
        origin = request.headers.get("Origin")
        if origin == "null" and request.headers.get("Sec-Fetch-Site") == "same-origin":
            origin = None  # a form of our own page: it says no origin since it says no referrer
        if origin is not None and origin.removeprefix("http://") not in self.names():
            return _plain(403, "requests of other origins are refused")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return _plain(403, "requests of other sites are refused")
        first = request.path.split("/")[1] if "/" in request.path else ""
        if not secrets.compare_digest(first.encode(), self.token.encode()):
            return _plain(404, "no such page: use the whole address that `harness view` printed")
        return None

    def middleware(self) -> Middleware:
        """The guard as aiohttp takes it."""

        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            answer: web.StreamResponse | None = self.refusal(request)
            if answer is None:
                try:
                    answer = await handler(request)
                except web.HTTPException as exc:
                    exc.headers.update(HEADERS)
                    raise
            for name, value in HEADERS.items():
                answer.headers.setdefault(name, value)
            answer.headers.add("Content-Security-Policy", FRAMES)
            return answer

        return guarded


def _plain(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text + "\n")
