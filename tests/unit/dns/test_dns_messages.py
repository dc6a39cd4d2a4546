"""Questions and answers of DNS as bytes."""

import pytest

from podscaler.controlplane.network import dns_messages
from podscaler.controlplane.network.dns_messages import Malformed, Question, ResourceRecord

ASKED = dns_messages.encode_query("Php.default.svc", dns_messages.A, 7)


def test_question() -> None:
    """A question is read with its name in lower case, its type and its number."""
    raw = b"\x03Php\x07default\x03svc\x00\x00\x01\x00\x01"
    assert dns_messages.read_question(ASKED) == Question(7, 0x0100, "php.default.svc", dns_messages.A, raw)


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(b"", id="empty"),
        pytest.param(ASKED[:14], id="cut in the name"),
        pytest.param(ASKED[:-2], id="cut behind the name"),
        pytest.param(ASKED[:2] + b"\x81" + ASKED[3:], id="an answer"),
        pytest.param(ASKED[:5] + b"\x02" + ASKED[6:], id="two questions"),
        pytest.param(ASKED[:12] + b"\xc0\x0c\x00\x01\x00\x01", id="a name that points at itself"),
        pytest.param(ASKED[:-1] + b"\x03", id="of another network"),
    ],
)
def test_what_is_no_question(message: bytes) -> None:
    """Bytes that are not one question are refused."""
    with pytest.raises(Malformed):
        dns_messages.read_question(message)


def test_answer() -> None:
    """An answer repeats number and question, says that it is one, and carries the records."""
    question = dns_messages.read_question(ASKED)
    answer = dns_messages.encode_response(question, [dns_messages.a_record("127.2.224.1")], ttl_s=5)
    assert answer.hex(" ", 4) == (
        dns_messages.HEADER.pack(7, 0x8580, 1, 1, 0, 0)
        + question.raw
        + b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04\x7f\x02\xe0\x01"
    ).hex(" ", 4)


def test_records_of_an_answer() -> None:
    """The records of one type are found behind those of others."""
    question = dns_messages.read_question(ASKED)
    records = [
        dns_messages.cname_record("other.example"),
        ResourceRecord(dns_messages.A, b"\x01\x02\x03\x04", "other.example"),
    ]
    answer = dns_messages.encode_response(question, records, ttl_s=5)
    assert dns_messages.read_records(answer, dns_messages.A) == [b"\x01\x02\x03\x04"]
    with pytest.raises(Malformed):
        dns_messages.read_records(answer[:40], dns_messages.A)
    with pytest.raises(Malformed):
        dns_messages.read_records(answer[:-2], dns_messages.A)


def test_labels_are_bounded() -> None:
    """A label of 63 bytes is encoded, a longer one is refused."""
    assert dns_messages.encode_name("a" * 63) == b"\x3f" + b"a" * 63 + b"\0"
    with pytest.raises(Malformed):
        dns_messages.encode_name("a" * 64)


def test_answer_that_is_too_long() -> None:
    """What does not fit is told by its head alone, with the mark that makes clients ask over TCP."""
    question = dns_messages.read_question(ASKED)
    short = dns_messages.truncate(
        dns_messages.encode_response(question, [dns_messages.a_record("127.0.0.1")] * 40, ttl_s=5)
    )
    assert short == dns_messages.HEADER.pack(7, 0x8780, 1, 0, 0, 0) + question.raw
