"""Rules of JSON as the API server reads and writes it."""

import pytest

from podscaler.api.text import json_text
from podscaler.api.text.json_text import DecodeError, Number, Repeated


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b'"', "unexpected end of JSON input"),
        (b"tru", "unexpected end of JSON input"),
        (b"1.", "unexpected end of JSON input"),
        (b"hi", "invalid character 'h' looking for beginning of value"),
        (b"\0", "invalid character '\\x00' looking for beginning of value"),
        (b"NaN", "invalid character 'N' looking for beginning of value"),
        (b"\xef\xbb\xbf{}", "invalid character 'ï' looking for beginning of value"),
        (b"{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        (b'{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        (b"[1,]", "invalid character ']' looking for beginning of value"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"[01]", "invalid character '1' after array element"),
        (b"{} x", "invalid character 'x' after top-level value"),
        (b"trux", "invalid character 'x' in literal true (expecting 'e')"),
        (b"-x", "invalid character 'x' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"1ex", "invalid character 'x' in exponent of numeric literal"),
        (b'"\x01"', "invalid character '\\x01' in string literal"),
        (b'"\\x"', "invalid character 'x' in string escape code"),
        (b'"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        (b"[" * 100_000, "exceeded max depth"),
        (b"[" * 201 + b"]" * 201, "exceeded max depth"),
    ],
    ids=repr,
)
def test_syntax_errors_have_go_s_words(body, text):
    """A text that is not JSON is refused with the sentence of Go's scanner."""
    with pytest.raises(DecodeError) as refused:
        json_text.parse(body)
    assert str(refused.value) == text


def test_nesting_up_to_the_limit_is_accepted():
    """The depth limit counts open brackets, and brackets inside strings are none."""
    deepest = b"[" * 199 + b'["' + b"[" * 500 + b'"]' + b"]" * 199
    assert json_text.parse(deepest)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'"\\ud800"', "\ufffd"),
        (b'{"\\udc00":"x\\ud800y"}', {"\ufffd": "x\ufffdy"}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\xff"', "\ufffd"),
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b" \n{}\t", {}),
    ],
    ids=repr,
)
def test_odd_texts_are_read_as_go_reads_them(body, value):
    """Invalid UTF-8 and lone surrogates become U+FFFD; 64-bit integers stay exact."""
    assert json_text.parse(body) == value


@pytest.mark.parametrize("text", ["1.50", "1e3", "9" * 25, "9" * 5000, "-0.0", "1E400"])
def test_numbers_remember_how_they_were_written(text):
    """Quantities and errors need the literal text of fractions, exponents and very large integers."""
    number = json_text.parse(text.encode())
    assert isinstance(number, Number)
    assert number.text == text


def test_repeated_keys_are_all_kept():
    """The last value counts, and every pair can be told to the client."""
    value = json_text.parse(b'{"a":1,"b":{"c":1},"a":2}')
    assert isinstance(value, Repeated)
    assert (dict(value), value.pairs) == ({"a": 2, "b": {"c": 1}}, [("a", 1), ("b", {"c": 1}), ("a", 2)])


def test_plain_data_has_neither_literals_nor_repeats():
    """Free-form values are stored as ordinary data, numbers as Go prints a float64."""
    value = json_text.plain(json_text.parse(b'{"a":[1.0,1.5,1e3],"a":[10.0,0.5]}'))
    assert (value, [type(item) for item in value["a"]]) == ({"a": [10, 0.5]}, [int, float])


def test_a_number_beyond_float64_is_refused_where_it_would_be_stored():
    """Free-form data has no way to hold an infinite number."""
    with pytest.raises(DecodeError, match="into Go value of type float64"):
        json_text.plain(json_text.parse(b"[1e400]"))


def test_answers_escape_what_go_escapes():
    """HTML characters and line separators are escaped, so that answers equal upstream's to the byte."""
    assert json_text.encode({"a": "<b>&\u2028\u2029é"}) == '{"a":"\\u003cb\\u003e\\u0026\\u2028\\u2029é"}'.encode()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (100.0, "100"),
        (123456.789, "123456.789"),
        (1.0000000000000002, "1.0000000000000002"),
        (1e16, "10000000000000000"),
        (1.2345678901234568e16, "12345678901234568"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (-1e21, "-1e+21"),
        (1.5e21, "1.5e+21"),
        (1.2345678901234569e23, "1.2345678901234569e+23"),
        (1.5e300, "1.5e+300"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (0.00001, "0.00001"),
        (1e-6, "0.000001"),
        (0.00000123, "0.00000123"),
        (9.9e-7, "9.9e-7"),
        (1e-7, "1e-7"),
        (-1e-7, "-1e-7"),
        (1.5e-9, "1.5e-9"),
        (1e-10, "1e-10"),
        (-2.5e-12, "-2.5e-12"),
        (1e-100, "1e-100"),
        (5e-324, "5e-324"),
    ],
    ids=repr,
)
def test_floats_are_written_as_go_writes_them(number, text):
    """With an exponent only below 1e-6 and from 1e21 on, wherever in an answer they stand (seen with Go 1.26)."""
    value = {"a": number, "b": [number, number], "c": "1e-07,1.0,"}
    assert json_text.encode(value).decode() == f'{{"a":{text},"b":[{text},{text}],"c":"1e-07,1.0,"}}'
    assert json_text.encode(number).decode() == text


@pytest.mark.parametrize(("text", "shown"), [("-0.0", "-0"), ("1E21", "1e+21"), ("0.00000010", "1e-7"), ("-0", "0")])
def test_free_form_numbers_come_back_as_go_writes_them(text, shown):
    """A number of free-form data is printed anew, not as the client wrote it."""
    assert json_text.encode(json_text.plain(json_text.parse(text.encode()))).decode() == shown


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (b"\xe2\x82", "\ufffd" * 2),
        (b"\xf0\x9f\x98", "\ufffd" * 3),
        (b"a\xe2\x82b", "a\ufffd\ufffdb"),
        (b"\xc3", "\ufffd"),
        (b"\xc0\x80", "\ufffd" * 2),
        (b"\xed\xa0\x80", "\ufffd" * 3),
        (b"\xf4\x90\x80\x80", "\ufffd" * 4),
        (b"\xe2\x28\xa1", "\ufffd(\ufffd"),
        (b"\xe2\x82\xe2\x82\xac", "\ufffd\ufffd\u20ac"),
        (b"\xf0\x9f\x98\x80", "\U0001f600"),
    ],
    ids=repr,
)
def test_each_invalid_byte_is_replaced(text, read):
    """A sequence that is cut off becomes one U+FFFD a byte, as Go decodes it (seen with Go 1.26)."""
    assert json_text.parse(b'"' + text + b'"') == read
