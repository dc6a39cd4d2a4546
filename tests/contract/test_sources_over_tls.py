"""Sources with real servers over TLS: servers are verified, with the authorities of the spec, unless it says no."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from certificate_authority import Issuer
from source_servers import Place, config, find_program, own_port, read, running
from test_postgresql_source import FOLDERS, is_ready, unprivileged

import prerequisites
from podscaler.sources.protocol import ExternalSource, InvalidSource, TLSSettings
from podscaler.sources.systems.http import HttpSource
from podscaler.sources.systems.nats import NatsSource
from podscaler.sources.systems.postgresql import PostgresqlSource
from podscaler.sources.systems.redis import RedisSource

Open = Callable[[TLSSettings], ExternalSource]
REDIS, NATS = find_program("redis-server"), find_program("nats-server")


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    """The authority of all servers here."""
    return Issuer()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an unprivileged server may use."""
    found = Path(tempfile.mkdtemp(prefix="podscaler-tls-"))
    user = unprivileged()
    if user:
        os.chown(found, user["user"], user["group"])
    yield found
    shutil.rmtree(found)


def certificate(issuer: Issuer, place: Place) -> str:
    """The file with certificate and key of a server at that place."""
    path = place.folder / "server.pem"
    path.write_bytes(issuer.issue(place.host))
    path.chmod(0o600)
    if user := unprivileged():
        os.chown(path, user["user"], user["group"])
    return str(path)


@pytest.fixture
def redis(issuer: Issuer, folder: Path) -> Iterator[Open]:
    """A Redis that speaks TLS alone."""
    if REDIS is None:
        prerequisites.REDIS.skip()
    place = own_port(folder)
    pem = certificate(issuer, place)
    command = [REDIS, "--bind", place.host, "--port", "0", "--tls-port", str(place.port), "--save", ""]
    command += ["--tls-cert-file", pem, "--tls-key-file", pem, "--tls-ca-cert-file", pem, "--tls-auth-clients", "no"]
    with running(command, place, cwd=folder):
        yield lambda tls: RedisSource(config({"address": place.address, "list": "none"}, tls=tls))


@pytest.fixture
def nats(issuer: Issuer, folder: Path) -> Iterator[Open]:
    """A NATS server that demands TLS, without a stream: its response is a failure of its own."""
    if NATS is None:
        prerequisites.NATS.skip()
    place = own_port(folder)
    pem = certificate(issuer, place)
    command = [NATS, "--addr", place.host, "--port", str(place.port), "--tls", "--tlscert", pem, "--tlskey", pem]
    with running([*command, "--jetstream", "--store_dir", str(folder)], place):
        yield lambda tls: NatsSource(config({"address": place.address, "stream": "NONE"}, timeout_s=10, tls=tls))


@pytest.fixture
def postgresql(issuer: Issuer, folder: Path) -> Iterator[Open]:
    """A PostgreSQL that trusts everyone who comes over TLS."""
    if not FOLDERS:
        prerequisites.POSTGRESQL.skip()
    place = own_port(folder)
    pem = certificate(issuer, place)
    options = {"cwd": folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}, **unprivileged()}
    initialize = [str(FOLDERS[0] / "initdb"), "-D", str(folder / "data"), "-U", "me", "--no-sync"]
    subprocess.run(initialize, check=True, capture_output=True, **options)
    (folder / "data" / "pg_hba.conf").write_text("hostssl all all 127.0.0.0/8 trust\n")
    command = [str(FOLDERS[0] / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-F", "-h", place.host]
    command += ["-p", str(place.port), "-c", "ssl=on", "-c", f"ssl_cert_file={pem}", "-c", f"ssl_key_file={pem}"]
    settings = {"host": place.host, "port": place.port, "database": "postgres", "username": "me", "query": "SELECT 0"}
    with running(command, place, is_up=lambda: is_ready(place), **options):
        yield lambda tls: PostgresqlSource(config(settings, tls=tls))


@pytest.fixture(params=["redis", "nats", "postgresql"])
def server(request: pytest.FixtureRequest) -> Open:
    """Each of them."""
    found: Open = request.getfixturevalue(request.param)
    return found


def outcome(source: ExternalSource) -> str:
    """The number, or the text of the failure."""
    try:
        return str(read(source))
    except Exception as error:
        return str(error)


@pytest.mark.slow
def test_servers_are_verified(server: Open, issuer: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the authority of the spec or not at all it works, with no other one; no temporary files are needed."""
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    trusted = outcome(server(TLSSettings(issuer.pem.decode())))
    unverified = outcome(server(TLSSettings(is_verified=False)))
    other = outcome(server(TLSSettings(Issuer().pem.decode())))
    expected = [each == "0" or "stream not found" in each for each in (trusted, unverified)]
    assert (expected, "certificate" in other or "SSL" in other) == ([True, True], True), (trusted, unverified, other)


async def test_http_servers_are_verified(issuer: Issuer, tmp_path: Path) -> None:
    """As the others; the URL says whether there is TLS."""

    async def zero(request: web.Request) -> web.StreamResponse:
        del request
        return web.Response(text="0")

    app = web.Application()
    app.router.add_get("/", zero)
    server = TestServer(app, scheme="https", host="127.0.0.1")
    await server.start_server(ssl=issuer.server_context(tmp_path, "127.0.0.1"))
    trusted, other = TLSSettings(issuer.pem.decode()), TLSSettings(Issuer().pem.decode())
    found = []
    for tls in (trusted, TLSSettings(is_verified=False), other, None):
        source = HttpSource(config({"url": str(server.make_url("/"))}, tls=tls))
        try:
            found.append(str(await source.read()))
        except Exception as error:
            found.append("unverified" if "certificate_verify_failed" in str(error).lower() else repr(error))
        await source.close()
    await server.close()
    assert found == ["0", "0", "unverified", "unverified"]


@pytest.mark.parametrize("pem", ["no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_authorities_that_are_none(pem: str) -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource, match=r"^tls.caBundle has no certificates in PEM$"):
        RedisSource(config({"address": "redis:6379", "list": "jobs"}, tls=TLSSettings(pem)))
