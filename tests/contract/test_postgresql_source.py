"""The source postgresql with a real PostgreSQL: queries, what may not be done, and everything that goes wrong."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from source_servers import PASSWORD, Place, config, failure, own_port, read, running

import prerequisites
from podscaler.sources import metric_numbers
from podscaler.sources.protocol import InvalidSource, InvalidValue, Number
from podscaler.sources.systems.postgresql import PostgresqlSource

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
pytestmark = prerequisites.POSTGRESQL.mark(is_there=bool(FOLDERS))


def unprivileged() -> dict[str, Any]:
    """Arguments of a process: PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("nobody")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def is_ready(place: Place) -> bool:
    """Whether the server is past its start, when it already accepts connections."""
    command = [str(FOLDERS[0] / "pg_isready"), "--quiet", "-h", place.host, "-p", str(place.port)]
    return subprocess.run(command).returncode == 0


@pytest.fixture(scope="module")
def server() -> Iterator[Place]:
    """A PostgreSQL with a table of three jobs."""
    folder = Path(tempfile.mkdtemp(prefix="podscaler-postgresql-"))
    user = unprivileged()
    if user:
        os.chown(folder, user["user"], user["group"])
    place = own_port(folder)
    (folder / "password").write_text(PASSWORD)
    options = {"cwd": folder, "env": {"PATH": os.environ["PATH"], "LC_ALL": "C"}, **user}
    initialize = [FOLDERS[0] / "initdb", "-D", folder / "data", "-U", "scaler", "-A", "scram-sha-256", "--no-sync"]
    subprocess.run([*initialize, f"--pwfile={folder / 'password'}"], check=True, capture_output=True, **options)
    command = [str(FOLDERS[0] / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-F"]
    command += ["-h", place.host, "-p", str(place.port)]
    with running(command, place, is_up=lambda: is_ready(place), **options):
        with psycopg.connect(
            host=place.host, port=place.port, user="scaler", password=PASSWORD, dbname="postgres"
        ) as db:
            db.execute("CREATE TABLE jobs AS SELECT generate_series(1, 3) AS id")
            db.execute("CREATE FUNCTION wipe() RETURNS integer LANGUAGE sql AS 'DELETE FROM jobs RETURNING 1'")
        yield place
    shutil.rmtree(folder)


def source(server: Place, query: str, *, timeout_s: float = 60, **settings: Any) -> PostgresqlSource:
    """The source with that query."""
    common = {"host": server.host, "port": server.port, "database": "postgres", "username": "scaler", "query": query}
    return PostgresqlSource(config(common | settings, timeout_s=timeout_s, password=PASSWORD))


@pytest.mark.parametrize(
    ("query", "number"),
    [
        pytest.param("SELECT count(*) FROM jobs", 3, id="a count"),
        pytest.param("SELECT count(*) FROM jobs;", 3, id="a semicolon at the end"),
        pytest.param("SELECT count(*) FROM jobs -- all of them", 3, id="a comment at the end"),
        pytest.param("SELECT count(*) FROM jobs WHERE id::text LIKE '%2%'", 1, id="a percent sign"),
        pytest.param("WITH old AS (SELECT * FROM jobs) SELECT avg(id) FROM old", 2, id="a numeric"),
        pytest.param("SELECT 0.5::float8", 0.5, id="a float"),
        pytest.param("SELECT '12'::text", 12, id="a text that is a number"),
    ],
)
def test_numbers(server: Place, query: str, number: Number) -> None:
    """Several reads use one connection."""
    assert metric_numbers.milli_of(read(source(server, query), times=3)) == number * 1000


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param(
            "SELECT id FROM jobs", "the result has more than one row, not one row with one number", id="two rows"
        ),
        pytest.param("SELECT 1, 2", "the result has 2 columns, not one row with one number", id="two columns"),
        pytest.param(
            "SELECT id FROM jobs WHERE id > 9", "the result has no row, not one row with one number", id="empty"
        ),
        pytest.param("SELECT max(id) FROM jobs WHERE id > 9", "the result is null, not a number", id="null"),
        pytest.param("SELECT 'a secret'", "the result is a text that is no number", id="a text"),
        pytest.param("SELECT true", "the result is a boolean, not a number", id="a boolean"),
        pytest.param("SELECT now()", "the result is of a type that is no number, not a number", id="a time"),
        pytest.param("SELECT 'NaN'::float8", "the result is NaN", id="NaN"),
        pytest.param("SELECT 'NaN'::numeric", "the result is NaN", id="a numeric NaN"),
        pytest.param("SELECT 'Infinity'::float8", "the result is infinite", id="infinite"),
        pytest.param("SELECT -1", "the result is negative", id="negative"),
        pytest.param("SELECT 1e40::numeric", "the result is greater than 9223372036854775", id="huge"),
    ],
)
def test_bad_values(server: Place, query: str, text: str) -> None:
    """Each is a failure with its reason, which does not repeat the value."""
    with pytest.raises(InvalidValue) as caught:
        metric_numbers.milli_of(read(source(server, query)))
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("query", "text"),
    [
        pytest.param("DELETE FROM jobs RETURNING 1", "syntax error", id="no SELECT"),
        pytest.param(
            "SELECT 1) AS a; DELETE FROM jobs; SELECT * FROM (SELECT 1", "multiple commands", id="two statements"
        ),
        pytest.param("SELECT nextval('numbers')", "does not exist", id="no sequence"),
        pytest.param("SELECT wipe()", "cannot execute DELETE in a read-only transaction", id="a write by a function"),
        pytest.param(
            "SELECT set_config('transaction_read_only', 'off', false)::int",
            "must be set before any query",
            id="read-write",
        ),
        pytest.param("SELECT count(*) FROM nothing", 'relation "nothing" does not exist', id="no table"),
    ],
)
def test_what_is_refused(server: Place, query: str, text: str) -> None:
    """Nothing is written, whatever the query says."""
    assert text in str(failure(source(server, query)))
    assert read(source(server, "SELECT count(*) FROM jobs")) == 3


def test_a_slow_query_is_ended_by_the_server(server: Place) -> None:
    """It does not go on after the time limit."""
    error = failure(source(server, "SELECT 1 FROM pg_sleep(60)", timeout_s=0.2))
    assert "canceling statement due to statement timeout" in str(error)


@pytest.mark.parametrize(
    "settings", [{"database": "nothing"}, {"username": "nobody"}], ids=["no database", "no such role"]
)
def test_a_login_that_fails(server: Place, settings: dict[str, Any]) -> None:
    """The server's reason, without the password."""
    error = str(failure(source(server, "SELECT 1", **settings)))
    assert ("failed" in error, PASSWORD in error) == (True, False)


def test_a_server_that_is_down(tmp_path: Path) -> None:
    """Nothing listens there."""
    assert "refused" in str(failure(source(own_port(tmp_path), "SELECT 1"))).lower()


def test_the_query(tmp_path: Path) -> None:
    """What is asked, of which server."""
    made = source(Place("db", 5432), "SELECT count(*) FROM jobs", database="shop")
    assert made.query == "postgresql SELECT count(*) FROM jobs at db:5432/shop"


def test_invalid_settings() -> None:
    """Found when the source is opened."""
    with pytest.raises(InvalidSource):
        PostgresqlSource(config({"host": "db"}))
