"""The default transport's ways: TLS with the machine's trust, proxies of the environment."""

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from chat_endpoint import ASKED, bare_server, http, read_request, said, serving

from harness_cli.errors import ProviderError, UsageError
from harness_cli.models.base import Deadline
from harness_cli.models.lean import LeanPolicy, proxy_for
from harness_cli.records.config import PolicyConfig


def ask(url: str, **more):
    async def go():
        policy = LeanPolicy("p", PolicyConfig(kind="openai", model="m", base_url=url, **more))
        try:
            return await policy.complete(ASKED, Deadline.within(10))
        finally:
            await policy.close()

    return go()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for 127.0.0.1: (file of it, file of its key)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "c.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "k.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return folder / "c.pem", folder / "k.pem"


async def tls_answer(reader, writer):
    while True:
        await read_request(reader)
        writer.write(http())


def tls_server(certificate: tuple[Path, Path]):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return bare_server(tls_answer, ssl=context)


def test_https_with_a_trusted_certificate(certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))

    async def go():
        async with tls_server(certificate) as address:
            return await ask(f"https://{address}/v1")

    assert asyncio.run(go()).content == "ok"


def test_an_untrusted_certificate_is_refused_at_once_with_a_hint(certificate, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)

    async def go():
        async with tls_server(certificate) as address:
            await ask(f"https://{address}/v1")

    with pytest.raises(ProviderError, match="not trusted") as caught:
        asyncio.run(go())
    assert not caught.value.retryable
    assert "SSL_CERT_FILE" in caught.value.hint


def test_through_a_proxy_with_a_password(monkeypatch):
    heads = []

    async def forward(reader, writer):
        head, _ = await read_request(reader)
        heads.append(head)
        writer.write(http())

    async def go():
        async with bare_server(forward) as address:
            monkeypatch.setenv("http_proxy", f"http://me:p%40ss@{address}")
            return await ask("http://endpoint.invalid/v1")

    assert asyncio.run(go()).content == "ok"
    assert heads[0].startswith("POST http://endpoint.invalid/v1/chat/completions HTTP/1.1")
    assert "Proxy-Authorization: Basic bWU6cEBzcw==" in heads[0]


def test_https_through_a_proxy_is_a_tunnel_that_keeps_the_password_from_the_endpoint(
    certificate, monkeypatch
):
    heads = []

    async def tunnel(reader, writer):
        head, _ = await read_request(reader)
        heads.append(head)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        host, port = head.split(" ")[1].split(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))

        async def copy(source, sink):
            while data := await source.read(65536):
                sink.write(data)

        both = asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
        try:
            await both
        finally:
            far_writer.close()

    seen = []

    async def answer(reader, writer):
        seen.append((await read_request(reader))[0])
        writer.write(http())

    async def go():
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        async with bare_server(answer, ssl=context) as address, bare_server(tunnel) as proxy:
            monkeypatch.setenv("https_proxy", f"http://me:secret-1@{proxy}")
            return await ask(f"https://{address}/v1")

    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert asyncio.run(go()).content == "ok"
    assert heads[0].startswith("CONNECT 127.0.0.1:")
    assert "Proxy-Authorization: Basic" in heads[0]
    assert "Proxy-Authorization" not in seen[0]


def test_a_stream_through_a_proxy_is_read_and_bounded(monkeypatch):
    async def go():
        async with serving([said("Hello.")]) as endpoint:
            # The endpoint itself is the proxy: it ignores the host in the request line.
            monkeypatch.setenv("http_proxy", endpoint.url.removesuffix("/v1"))
            reply = await ask(endpoint.url.replace("127.0.0.1", "endpoint.invalid"))
        assert (reply.content, reply.usage.input_tokens) == ("Hello.", 10)

    asyncio.run(go())


@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({}, "http://h/v1", None),
        ({"http_proxy": "http://p:1"}, "http://h/v1", "http://p:1"),
        ({"http_proxy": "p:1"}, "http://h/v1", "http://p:1"),
        ({"http_proxy": "http://p:1"}, "https://h/v1", None),
        ({"https_proxy": "http://p:1"}, "https://h:8443/v1", "http://p:1"),
        ({"all_proxy": "http://p:1"}, "https://h/v1", "http://p:1"),
        ({"http_proxy": "http://p:1", "no_proxy": "h"}, "http://h:8000/v1", None),
        ({"http_proxy": "http://p:1", "no_proxy": "*"}, "http://h/v1", None),
    ],
)
def test_which_proxy_the_environment_names(monkeypatch, environment, url, expected):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(url) == expected


@pytest.mark.parametrize("url", ["ftp://h/v1", "h/v1", "http://"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(UsageError):
        LeanPolicy("p", PolicyConfig(kind="openai", base_url=url))
