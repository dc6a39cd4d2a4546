"""The Common Expression Language: what expressions mean, what they may not say, and what they cannot cost."""

import pytest

from podscaler.api.cel.compile import programs
from podscaler.api.cel.values import types
from podscaler.api.cel.values.budget import Budget
from podscaler.api.cel.values.errors import BudgetError, EvaluationError
from podscaler.api.cel.values.issues import CompileError
from podscaler.api.cel.values.values import Duration, MapList, SetList, Timestamp

SELF = types.object_of(
    "selfType0",
    {
        "n": types.INT,
        "s": types.STRING,
        "x": types.DOUBLE,
        "ints": types.list_of(types.INT),
        "texts": types.map_of(types.STRING, types.STRING),
        "any": types.DYN,
        "__namespace__": types.STRING,
    },
)
VALUE = {
    "n": 3,
    "s": "Hello World",
    "x": 2.5,
    "ints": [3, 1, 2],
    "texts": {"a": "b"},
    "any": "50%",
    "__namespace__": "ns",
}


def evaluated(source: str, value: object = VALUE, own: types.Type = SELF) -> object:
    """What an expression over `self` makes."""
    return programs.compiled(source, {"self": own}).run({"self": value}, Budget())


def fault(source: str) -> str:
    """Why an expression cannot be compiled."""
    with pytest.raises(CompileError) as caught:
        programs.compiled(source, {"self": SELF})
    return str(caught.value)


@pytest.mark.parametrize("key", ["dyn([1])", "dyn({'a': 1})"])
@pytest.mark.parametrize("form", ["dyn(self.texts)[{}] == 'b'", "dyn(self.texts)[?{}].hasValue()"])
def test_lists_and_maps_are_no_keys(form: str, key: str) -> None:
    with pytest.raises(EvaluationError, match="no such overload"):
        evaluated(form.format(key))


VALUES = {
    "['b', 'b', 'c', 'a', 'c'].distinct()": ["b", "c", "a"],
    "self.?namespace.orValue('none')": "ns",
    "1 + 2 * 3 - 4 / 3": 6,
    "-7 / 2": -3,
    "-7 % 3": -1,
    "0x10 + 1": 17,
    "1 < 2.5 && 2u > 1": True,
    "self.n > 1 ? 'big' : 'small'": "big",
    "self.n / 0 == 1 || true": True,
    "false && self.n / 0 == 1": False,
    "self.ints.all(i, 1 / (i - 1) > 100)": False,
    "self.ints.exists(i, v, i == 2 && v == 2)": True,
    "self.ints.exists_one(v, v > 2)": True,
    "self.ints.map(v, v > 1, v * 2)": [6, 4],
    "self.ints.filter(v, v > 1)": [3, 2],
    "self.texts.transformMap(k, v, k + v)": {"a": "ab"},
    "self.ints.transformList(i, v, i * v)": [0, 1, 4],
    "self.texts.transformMapEntry(k, v, {v: k})": {"b": "a"},
    "[3, 1, 2].sortBy(v, -v)": [3, 2, 1],
    "has(self.s) && !has(self.texts.zz)": True,
    "self.?s.orValue('none')": "Hello World",
    "self.texts[?'zz'].orValue('none')": "none",
    "self.?n.optMap(v, v + 1).orValue(0)": 4,
    "self.namespace + self.__namespace__": "nsns",
    "self.texts.`a`": "b",
    "type(self.any) == string": True,
    "string(100000000.0) + string(0.1)": "1e+080.1",
    "int('42') + int(2.9)": 44,
    "self.s.split(' ')[1].lowerAscii().replace('l', 'L')": "worLd",
    "'%s has %d of %.2f'.format(['a', 1, 2.5])": "a has 1 of 2.50",
    "'%s'.format([{'b': [1.5], 'a': 'x'}])": '{"a":"x", "b":[1.500000]}',
    "self.s.findAll('[A-Z][a-z]+')": ["Hello", "World"],
    "self.s.matches('^(l+)+$')": False,
    "self.s.find('(o+)+x') + self.s.find(r'(?i)WO\\pL')": "Wor",
    "timestamp('2024-02-29T23:00:00Z').getDate('+02:00')": 1,
    "string(timestamp('2024-01-01T00:00:00Z') + duration('90m'))": "2024-01-01T01:30:00Z",
    "string(duration('1h30m5.5s'))": "5405.5s",
    "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('1') == quantity('1000m')": True,
    "cidr('10.1.2.3/8').containsIP('10.9.9.9') && ip('::1').isLoopback()": True,
    "semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) && isSemver('v1.2', true)": True,
    "semver('18446744073709551615.0.0').major()": -1,
    "isSemver('18446744073709551616.0.0') || !isSemver('1.0.0+98765432109876543210')": False,
    "url('https://u@h:8443/a%20b?x=1&x=2').getQuery()['x'][1]": "2",
    "format.dns1123Label().validate('Not_ok').hasValue()": True,
    "sets.equivalent(self.ints, [1, 2, 3, 3])": True,
    "[?optional.of(1), ?optional.none(), 2]": [1, 2],
}


@pytest.mark.parametrize("source", VALUES)
def test_expressions_have_values(source: str) -> None:
    """Each expression means what it means to the real API server."""
    assert evaluated(source) == VALUES[source]


ERRORS = {
    "self.n / 0 == 1": "division by zero",
    "9223372036854775807 + self.n": "integer overflow",
    "self.ints[5]": "index out of bounds: 5",
    "self.texts['zz']": "no such key: zz",
    "self.any + 1": "no such overload",
    "int(self.s)": "type conversion error from 'string' to 'int'",
    "self.s.substring(50)": "index out of range: 50",
    "optional.none().value()": "optional.none() dereference",
    "self.s.matches(self.s + '[')": "error parsing regexp: missing closing ]: `[`",
}


@pytest.mark.parametrize("source", ERRORS)
def test_expressions_fail_in_upstreams_words(source: str) -> None:
    """What has no value says why."""
    with pytest.raises(EvaluationError) as caught:
        evaluated(source)
    assert str(caught.value) == ERRORS[source]


FAULTS = {
    "self.zz > 1": (5, "undefined field 'zz'"),
    "self.n + 'a' == 'b'": (8, "found no matching overload for '_+_' applied to '(int, string)'"),
    "self.s.contains(1)": (16, "found no matching overload for 'contains' applied to 'string.(int)'"),
    "foo(1)": (4, "undeclared reference to 'foo' (in container '')"),
    "self.n && true": (5, "expected type 'bool' but found 'int'"),
    "self.n.all(e, true)": (
        5,
        "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
    ),
    "has(1)": (5, "invalid argument to has() macro"),
    "[1, 'a'].size() == 2": (5, "expected type 'int' but found 'string'"),
    "duration('1x') == duration('1s')": (10, "invalid duration argument"),
    "'%d'.format(['a']) == ''": (
        14,
        "error during formatting: decimal clause can only be used on integers, was given string",
    ),
    "(self.n > 1": (12, "Syntax error: missing ')' at '<EOF>'"),
    "self.n > 1)": (11, "Syntax error: extraneous input ')' expecting <EOF>"),
    "self.n is 1": (8, "Syntax error: mismatched input 'is' expecting <EOF>"),
}


@pytest.mark.parametrize("source", FAULTS)
def test_faults_point_at_their_place(source: str) -> None:
    """What cannot be compiled is told with its column, the line and a caret."""
    column, text = FAULTS[source]
    assert fault(source) == f"ERROR: <input>:1:{column}: {text}\n | {source}\n | {'.' * (column - 1)}^"


@pytest.mark.parametrize("source", ["(" * 300 + "true" + ")" * 300, "1" + "+1" * 5000, "true" + "&&true" * 20_000])
def test_expressions_that_are_too_large_are_refused(source: str) -> None:
    """Neither nesting nor length exhausts the stack."""
    assert "limit" in fault(source)


HOSTILE = (
    "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))",
    "self.map(x, self.map(y, self.map(z, z))).size() > 0",
    "self.all(x, self.sort().size() > 0 && self == self)",
    "self.all(x, '%s'.format([self]).size() > 0)",
    "lists.range(1000000).all(x, lists.range(1000000).size() > 0)",
)


@pytest.mark.parametrize("source", HOSTILE)
def test_work_is_bounded(source: str) -> None:
    """An expression that would run for ever is stopped."""
    with pytest.raises(BudgetError):
        evaluated(source, list(range(1000)), types.list_of(types.INT))


@pytest.mark.parametrize("source", ["self.findAll('a*b|a').size() > 0", "self.matches('(a|b)*a(a|b){400}c')"])
def test_patterns_are_bounded(source: str) -> None:
    """Searches that read the whole text at every match, or with a large program, are stopped."""
    with pytest.raises(BudgetError):
        evaluated(source, "a" * 1_000_000, types.STRING)


def test_texts_do_not_explode() -> None:
    """A text that a replacement would blow up is not made."""
    with pytest.raises(BudgetError):
        evaluated("self.replace('a', self).size() > 0", "a" * 100_000, types.STRING)


def test_variables_that_are_used_are_known() -> None:
    """A rule about change is recognised by the variable that it names, not by its text."""
    names = {"self": SELF, "oldSelf": SELF}
    used = [programs.compiled(source, names).uses for source in ("self.s == 'oldSelf'", "self.n > oldSelf.n", "1 == 1")]
    assert used == [{"self"}, {"self", "oldSelf"}, set()]


def test_lists_by_their_type() -> None:
    """Sets and maps of a schema are equal in any order; `+` makes a union or a merge of them."""
    one, other = SetList(["a", "b"]), SetList(["b", "a"])
    merged = MapList([{"k": "a", "v": 1}], ("k",))
    own = types.list_of(types.DYN)
    assert (
        evaluated("self[0] == self[1]", [one, other], own),
        evaluated("self[0] + self[1] + ['c']", [one, other], own),
        evaluated("self + [{'k': dyn('a'), 'v': dyn(2)}]", merged, own),
    ) == (True, ["a", "b", "c"], [{"k": "a", "v": 2}])


def test_times_are_values() -> None:
    """Instants and spans are compared and subtracted as such."""
    own = types.list_of(types.TIMESTAMP)
    assert evaluated("self[1] - self[0]", [Timestamp(0), Timestamp(1_500_000_000)], own) == Duration(1_500_000_000)
