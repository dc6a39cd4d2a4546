"""Encodes and decodes DNS messages (the bytes of a UDP datagram); called by `dns_server` and `dns_zone`.

A query has one question, as all resolvers send it; in responses only the question's name is compressed. For example
`encode_response(read_question(query), [a_record("127.5.224.1")], ttl_s=5)` is the response with one A record. A new
record type: its number, and a function such as `a_record`.

Source: RFC 1035 (section 4), RFC 2782 (SRV).
"""

import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

A, CNAME, PTR, AAAA, SRV, ANY = 1, 5, 12, 28, 33, 255
"""Record types (QTYPE)."""
INTERNET: Final = 1
"""The record class IN."""
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3
"""Response codes (RCODE); NO_SUCH_NAME is NXDOMAIN."""

HEADER: Final = struct.Struct(">HHHHHH")
"""The header: id, flags, and the numbers of questions, answers, authority records and additional records."""
NAME_MAX_BYTES: Final = 255
UDP_MAX_BYTES: Final = 512
"""The largest response over UDP without EDNS."""

# Bits of the second word of the header.
_IS_RESPONSE: Final = 0x8000  # QR
_AUTHORITATIVE: Final = 0x0400  # AA
_TRUNCATED: Final = 0x0200  # TC
_RECURSION_DESIRED: Final = 0x0100  # RD
_RECURSION_AVAILABLE: Final = 0x0080  # RA
_OPCODE_MASK: Final = 0x7800
_QUESTION_NAME: Final = b"\xc0\x0c"
"""A compression pointer to the name of the question, which starts behind the 12 bytes of the header."""
_POINTER_MIN: Final = 0xC0
"""A length byte from here on begins a compression pointer, which has two bytes."""
_LABEL_MAX_BYTES: Final = 63
_SRV_PRIORITY, _SRV_WEIGHT = 0, 100
_TYPE_AND_CLASS: Final = struct.Struct(">HH")
_RECORD_HEAD: Final = struct.Struct(">HHIH")
"""Of a record, after its name: type, class, time to live, length of the data."""


class Malformed(Exception):
    """These bytes are not a valid DNS message, or a name cannot be encoded in one."""


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a query.

    Attributes:
        query_id: the id of the query, which the response repeats.
        flags: the second word of the query's header.
        name: the queried name in lower case, without a trailing dot.
        type: the type of the requested records (`A`, `SRV`, ...).
        raw: the question section, which the response repeats.
    """

    query_id: int
    flags: int
    name: str
    type: int
    raw: bytes


@dataclass(frozen=True, slots=True)
class ResourceRecord:
    """One record of a response.

    Attributes:
        type: the record type (`A`, `SRV`, ...).
        data: the encoded value (RDATA), for an A record four bytes.
        owner: the name that the record is about, empty for the name in the question.
    """

    type: int
    data: bytes
    owner: str = ""


def a_record(address: str) -> ResourceRecord:
    """The A record of an IPv4 address."""
    return ResourceRecord(A, socket.inet_pton(socket.AF_INET, address))


def cname_record(target: str) -> ResourceRecord:
    """The CNAME record with the canonical name `target`. It, PTR and SRV records raise Malformed for a long label."""
    return ResourceRecord(CNAME, encode_name(target))


def ptr_record(target: str) -> ResourceRecord:
    """The PTR record with the name `target` of an address."""
    return ResourceRecord(PTR, encode_name(target))


def srv_record(target: str, port: int) -> ResourceRecord:
    """The SRV record with host and port of a Service; priority and weight are fixed."""
    return ResourceRecord(SRV, struct.pack(">HHH", _SRV_PRIORITY, _SRV_WEIGHT, port) + encode_name(target))


def encode_name(name: str) -> bytes:
    """A name as a sequence of labels: "a.bc" becomes 1 a 2 b c 0.

    Raises Malformed for a label over _LABEL_MAX_BYTES.
    """
    labels = [label.encode() for label in name.strip(".").split(".") if label]
    if any(len(label) > _LABEL_MAX_BYTES for label in labels):
        raise Malformed("a label that is too long")
    return b"".join(bytes((len(label),)) + label for label in labels) + b"\0"


def read_question(message: bytes) -> Question:
    """The question of a query. Raises Malformed for anything but a query with exactly one question."""
    if len(message) < HEADER.size:
        raise Malformed("too short")
    query_id, flags, questions, *_ = HEADER.unpack_from(message)
    if flags & _IS_RESPONSE or questions != 1:
        raise Malformed("not one question")
    name, name_end = _read_name(message, HEADER.size)
    question_end = name_end + _TYPE_AND_CLASS.size
    if question_end > len(message):
        raise Malformed("too short")
    record_type, record_class = _TYPE_AND_CLASS.unpack_from(message, name_end)
    if record_class not in (INTERNET, ANY):
        raise Malformed("not of class IN")
    return Question(query_id, flags, name, record_type, message[HEADER.size : question_end])


def _read_name(message: bytes, offset: int) -> tuple[str, int]:
    """The name at `offset` and the offset behind it. Raises Malformed."""
    labels: list[str] = []
    start = offset
    while True:
        if offset >= len(message) or offset - start > NAME_MAX_BYTES:
            raise Malformed("a name without end")
        length = message[offset]
        if length == 0:
            return ".".join(labels), offset + 1
        if length > _LABEL_MAX_BYTES:
            raise Malformed("a compressed name in a question")
        labels.append(message[offset + 1 : offset + 1 + length].decode("ascii", "replace").lower())
        offset += 1 + length


def encode_response(
    question: Question, records: Sequence[ResourceRecord], *, ttl_s: int, response_code: int = NO_ERROR
) -> bytes:
    """The encoded response to a question. Raises Malformed for an `owner` that cannot be encoded.

    Args:
        ttl_s: the time to live of all records, in seconds.
        response_code: NO_ERROR, SERVER_FAILURE or NO_SUCH_NAME.
    """
    repeated_flags = question.flags & (_RECURSION_DESIRED | _OPCODE_MASK)
    flags = _IS_RESPONSE | _AUTHORITATIVE | _RECURSION_AVAILABLE | repeated_flags | response_code
    answer_section = b"".join(_encode_record(record, ttl_s) for record in records)
    return HEADER.pack(question.query_id, flags, 1, len(records), 0, 0) + question.raw + answer_section


def truncate(message: bytes) -> bytes:
    """The header and question of a response that is too long for UDP, with the flag TC.

    The client then repeats the query over TCP. Raises Malformed if the response of a resolver is not valid.
    """
    query_id, flags, *_ = HEADER.unpack_from(message)
    _, name_end = _read_name(message, HEADER.size)
    question_end = name_end + _TYPE_AND_CLASS.size
    return HEADER.pack(query_id, flags | _TRUNCATED, 1, 0, 0, 0) + message[HEADER.size : question_end]


def encode_query(name: str, record_type: int, query_id: int) -> bytes:
    """The query for records of one type of a name. Raises Malformed for a name that cannot be encoded."""
    header = HEADER.pack(query_id, _RECURSION_DESIRED, 1, 0, 0, 0)
    return header + encode_name(name) + _TYPE_AND_CLASS.pack(record_type, INTERNET)


def read_records(message: bytes, record_type: int) -> list[bytes]:
    """The data of a response's records of one type, which must not contain names (A, AAAA).

    The caller compares id and response code. Raises Malformed for a message that ends too soon.
    """
    try:
        _, _, questions, answers, *_ = HEADER.unpack_from(message)
        offset = HEADER.size
        for _ in range(questions):
            offset = _skip_name(message, offset) + _TYPE_AND_CLASS.size
        records = []
        for _ in range(answers):
            offset = _skip_name(message, offset)
            found_type, _, _, length = _RECORD_HEAD.unpack_from(message, offset)
            offset += _RECORD_HEAD.size
            if offset + length > len(message):
                raise Malformed("an answer that ends too soon")
            if found_type == record_type:
                records.append(message[offset : offset + length])
            offset += length
    except (struct.error, IndexError):
        raise Malformed("an answer that ends too soon") from None
    return records


def _skip_name(message: bytes, offset: int) -> int:
    """The offset behind the name at `offset`, which may be compressed."""
    while (length := message[offset]) != 0:
        if length >= _POINTER_MIN:
            return offset + 2
        offset += 1 + length
    return offset + 1


def _encode_record(record: ResourceRecord, ttl_s: int) -> bytes:
    """A record of the answer section."""
    owner = encode_name(record.owner) if record.owner else _QUESTION_NAME
    return owner + _RECORD_HEAD.pack(record.type, INTERNET, ttl_s, len(record.data)) + record.data
