"""Expressions over the odd columns, for each function of the table, and their evaluation here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pyarrow as pa

from odd_columns import ERROR, ODD_ROWS, as_texts
from optimist.core.errors import SchemaError, UsageError
from optimist.core.local.values import parse_value
from optimist.core.predicates.functions.value import Value
from optimist.core.schema.arrow_types import from_arrow_schema, to_arrow_type

__all__ = ["SCHEMA", "answers_here", "expressions"]

SCHEMA = from_arrow_schema(ODD_ROWS.schema)
_NUMBERS = "bhilfdnmpqr"
_LETTERS = _NUMBERS + "sotzw"
_CONSTANTS = ("0", "2", "-3L", "1.5", "0.25BD", "2e0", "-1.5F", "NULL", "10000000000")


def expressions() -> Iterator[str]:
    """Yield the expressions; some of them only Spark computes."""
    yield from _arithmetic()
    yield from _comparisons()
    yield from _choices()
    yield from _bits()
    yield from _casts()
    yield from _texts()
    yield from _dates()
    yield from _parts_that_fail()
    yield from _patterns()
    yield from _digests()
    yield from _collections()
    yield from _moved_times()
    yield from _formatted_times()
    yield from _rounding()
    yield from _rounded_twice()
    yield from _whole_digits()
    yield from _made_maps()
    yield from _spans_of_months()
    yield from _long_remainders()


def _arithmetic() -> Iterator[str]:
    operators = ("+", "-", "*", "/", "%", "DIV")
    for operator, one, other in product(operators, _NUMBERS, _NUMBERS):
        yield f"{one}1 {operator} {other}2"
    for operator, one, constant in product(operators, _NUMBERS, _CONSTANTS):
        yield f"{one}1 {operator} {constant}"
        yield f"{constant} {operator} {one}1"
    for one, other in product(_NUMBERS, _NUMBERS):
        yield f"pmod({one}1, {other}2)"
    for one in _NUMBERS:
        yield f"mod({one}1, {one}2)"
        yield f"div({one}1, {one}2)"
        yield from (f"-{one}1", f"+{one}1", f"negative({one}1)", f"positive({one}1)")
        yield from (f"{name}({one}1)" for name in ("abs", "sign", "signum"))
        yield from (f"{name}({one}1)" for name in ("ceil", "ceiling", "floor", "round", "bround"))
        yield from (
            f"{name}({one}1, {k})" for name in ("round", "bround") for k in (0, 1, 2, 5, 40)
        )
    yield from ("-(5) + n1", "n1 + CAST(2 AS INT)", "(n1 + 1) * (m2 - 2L)", "n1 * n2 / 3", "t1 + 1")


def _whole_digits() -> Iterator[str]:
    for name, one, digits in product(("round", "bround"), _NUMBERS, (-1, -2, -3, -10, -19, -38)):
        yield f"{name}({one}1, {digits})"
    yield from (f"bround({one}, {k})" for one in ("d1", "d1 / 10", "d2 * 1.005") for k in (0, 1, 2))
    pairs = (("abc", "xyz"), ("abca", "x"), ("aB\u00e9", "\U0001f600"), ("", "x"), ("%_", ""))
    yield from (f"translate({s}, '{old}', '{new}')" for s in ("s1", "y1") for old, new in pairs)
    days = ("MO", "tue", "Wednesday", "TH", "Fri", "SATURDAY", "su", "x")
    yield from (f"next_day({one}, '{day}')" for one in ("t1", "z1", "w1") for day in days)


def _made_maps() -> Iterator[str]:
    """Yield maps with good keys only: Spark's maps do not survive an error that is caught."""
    for one, other in zip("kbnsvotzwx", "skrzofdwlt", strict=True):
        yield f"if({one}1 IS NULL, NULL, map({one}1, {other}2))"
    for one in "ksnt":
        wrong = f"{one}1 IS NULL OR {one}2 IS NULL OR {one}1 = {one}2"
        yield f"if({wrong}, NULL, map({one}1, s1, {one}2, s2))"
        good = f"NOT ({wrong}) AND size(ints) = 2"
        yield f"CASE WHEN {good} THEN map_from_arrays(array({one}1, {one}2), ints) END"
        yield f"if({wrong}, NULL, map_from_arrays(array({one}1, {one}2), array(k1, d1))[{one}2])"
    yield from (
        "map('a', k1, 'b', 2.5)",
        "map(1, k1, 2L, k2)[2L]",
        "map(coalesce(k1, 0), s1)[10]",
        "map_keys(map('x', k1, 'y', k2))",
        "map_values(map(1, k1, 2.5, NULL))",
        "size(map(coalesce(s1, ''), 1))",
        "coalesce(pairs, map('z', k1))",
        "map_from_arrays(map_keys(pairs), map_values(pairs))",
        "if(size(ints) = 18, map_from_arrays(ints, ints), NULL)",
        "map_from_arrays(if(o1, array(1, 2), NULL), if(o2, array('q', s1), NULL))",
        "map_from_arrays(array('x', 'y'), array(k1, k2))['y']",
        "map_from_arrays(array(1, 2), if(size(deep) = 2, deep, NULL))",
    )


def _spans_of_months() -> Iterator[str]:
    for one, two, rounded in product("tzw", "tzw", ("", ", true", ", false", ", o1")):
        yield f"months_between({one}1, {two}2{rounded})"
    days = ("'2024-02-29'", "'0001-01-31'", "'2023-12-31'")
    yield from (f"months_between(t1, DATE {day})" for day in days)
    yield from (f"months_between({one}1, last_day({one}1))" for one in "tzw")
    yield from (f"months_between(z1, z1 + INTERVAL {move})" for move in ("1 DAY", "-31 DAYS"))
    yield from ("months_between(z1, z1 - INTERVAL 1 SECOND)", "months_between(t1, k1)")


def _long_remainders() -> Iterator[str]:
    targets = ("DECIMAL(20,0)", "DECIMAL(25,10)", "DECIMAL(38,10)", "DECIMAL(30,0)")
    for one, target in product("nmpq", targets):
        yield from (f"{one}1 % CAST({one}2 AS {target})", f"pmod(l1, CAST({one}2 AS {target}))")
        yield from (f"CAST(l1 AS {target}) % {one}2", f"pmod(CAST(k1 AS {target}), {one}2)")
        yield f"TRY_CAST({one}1 AS {target}) % TRY_CAST({one}2 AS {target})"
        yield f"pmod(TRY_CAST({one}1 AS {target}), -TRY_CAST({one}2 AS {target}))"


def _bits() -> Iterator[str]:
    for operator, one, other in product("&|^", "bhil", "bhil"):
        yield f"{one}1 {operator} {other}2"
    for one in _NUMBERS:
        yield from (f"nullifzero({one}1)", f"sqrt({one}1)")
        yield from (f"~{one}1", f"zeroifnull({one}1)", f"isnan({one}1)", f"{one}1 & 7")


def _comparisons() -> Iterator[str]:
    operators = ("=", "<>", "<", "<=", ">", ">=", "<=>")
    for operator, one in product(operators, _LETTERS):
        yield f"{one}1 {operator} {one}2"
        yield f"coalesce({one}1, {one}2) {operator} {one}2"
    for one, other in product(_NUMBERS, _NUMBERS):
        if one != other:
            yield from (f"{one}1 < {other}2", f"abs({one}1) = {other}2", f"{one}1 <=> +{other}2")
    for one, constant in product(_NUMBERS, _CONSTANTS):
        yield f"+{one}1 >= {constant}"
    for one in _LETTERS:
        yield from (
            f"equal_null({one}1, {one}2)",
            f"coalesce({one}1) IN ({one}2, NULL)",
            f"coalesce({one}1) IN ({one}2)",
            f"coalesce({one}1, {one}2) BETWEEN {one}1 AND {one}2",
            f"coalesce({one}1) NOT IN ({one}2, {one}1)",
            f"coalesce({one}1) IS NULL",
            f"coalesce({one}1) IS NOT NULL",
            f"isnull({one}1)",
            f"isnotnull({one}1)",
            f"{one}1 IS DISTINCT FROM {one}2",
        )


def _choices() -> Iterator[str]:
    for name, one in product(("greatest", "least"), _LETTERS):
        yield f"{name}({one}1, {one}2)"
        yield f"{name}({one}1, NULL, {one}2, {one}1)"
    for name, one, other in product(("greatest", "coalesce", "nvl"), _NUMBERS, _NUMBERS):
        yield f"{name}({one}1, {other}2)"
    for one in _LETTERS:
        yield from (
            f"coalesce({one}1, {one}2, NULL)",
            f"nvl({one}1, {one}2)",
            f"ifnull(NULL, {one}2)",
            f"nvl2(k1, {one}1, {one}2)",
            f"nullif({one}1, {one}2)",
            f"if(o1, {one}1, {one}2)",
            f"CASE WHEN o1 THEN {one}1 WHEN NOT o2 THEN {one}2 END",
            f"CASE {one}1 WHEN {one}2 THEN 1 WHEN NULL THEN 2 ELSE 3 END",
        )
    for one, constant in product(_NUMBERS, _CONSTANTS):
        yield from (f"coalesce({one}1, {constant})", f"if(o1, {constant}, {one}1)")
    yield from (
        "o1 AND o2",
        "o1 OR NOT o2",
        "NOT o1",
        "coalesce(o1, o2) AND i1 > i2",
        "o1 OR 1 / k1 > 0",
        "k1 <> 0 AND 10 DIV k1 > 0",
        "k1 = 0 OR 10 / k1 > 1",
        "if(k1 = 0, 0, 10 DIV k1)",
        "coalesce(k1, 1 DIV 0)",
        "CASE WHEN k1 = 0 THEN 1 DIV k1 ELSE k1 END",
        "(o1 AND o2) IS TRUE",
        "(k1 > k2) IS NOT FALSE",
        "nullif(k1, 0) + 1",
        "10 / nullif(k1, 0)",
    )


def _texts() -> Iterator[str]:
    yield from ("concat(s1, s2)", "concat(s1)", "s1 || s2 || s3", "concat(s1, NULL, s2)")
    yield from ("concat_ws(',', s1, s2, s3)", "concat_ws('', s1)", "concat_ws('--', s1, NULL)")
    names = ("upper", "ucase", "lower", "lcase", "reverse", "length", "char_length", "len")
    names += ("initcap", "character_length", "octet_length", "trim", "ltrim", "rtrim", "btrim")
    yield from (f"{name}({column}1)" for name, column in product(names, "csuv"))
    yield from ("btrim(s1, 'abc')", "btrim(s1, ' a')", "btrim(s1, '')")
    for start, length in product(
        (0, 1, 2, 3, -1, -2, -5, 100), ("", ", 0", ", 1", ", 2", ", -1", ", 9")
    ):
        yield from (f"substring(s1, {start}{length})", f"substr(s2, {start}{length})")
    for count in (0, 1, 2, 5, 50, -1):
        yield from (f"{name}(s1, {count})" for name in ("left", "right", "repeat"))
        yield from (f"{name}(s1, {count})" for name in ("lpad", "rpad"))
        yield from (
            f"{name}(s1, {count}, '{k}')"
            for name in ("lpad", "rpad")
            for k in ("x", "\U0001f600", "ab", "")
        )
        yield f"split_part(s1, ',', {count})"
        yield f"split_part(s1, 'b', {count})"
        yield f"split_part(s1, '', {count})"
    for text in ("a", "bc", "", "\U0001f600", "aa", "x", "\u0301", "B"):
        yield from (f"replace(s1, '{text}')", f"replace(s1, '{text}', 'bb')")
        yield from (f"instr(s1, '{text}')", f"locate('{text}', s1)", f"position('{text}' IN s1)")
        yield from (
            f"{name}(concat(s1), '{text}')" for name in ("startswith", "endswith", "contains")
        )
    for pattern in ("a%", "%b%", "_", "a_c", "", "%", "a\\\\_c", "a\\\\%c", "__", "A%c", "\u00e9"):
        yield from (f"concat(s1) LIKE '{pattern}'", f"concat(s1) ILIKE '{pattern}'")
        yield f"like(concat(s1), '{pattern}')"
        yield f"s1 NOT ILIKE '{pattern}'"
    yield from ("concat(s1) LIKE 'a#%c' ESCAPE '#'", "upper(s1) = s2", "length(s1) > length(s2)")
    yield from (f"initcap(concat(u1, '{mark}bC D', c1))" for mark in (" ", "  ", "-", "\\t", "9"))


def _dates() -> Iterator[str]:
    for one, other, third in product("tkbl", "kbo", "ki"):
        yield f"make_date({one}1, {other}1, {third}2)"
    yield from (
        "make_date(2000 + k1, abs(k2), 1 + k3 * k3)",
        "make_date(k1 + 2023, 2, 29 + k2 % 1)",
    )
    yield from (
        "make_date(if(k1 = 2, 2024, 2000), 2, 29)",
        "make_date(i1, 1, 1)",
        "make_date(0, 1, 1)",
    )
    yield from (f"unix_{unit}({one}1)" for unit in ("micros", "millis", "seconds") for one in "zwt")
    yield from ("unix_date(t1)", "date_from_unix_date(k1)", "date_from_unix_date(i1)")
    names = ("to_date", "date", "year", "quarter", "month", "day", "dayofmonth", "dayofweek")
    names += ("weekday", "dayofyear", "weekofyear", "last_day", "hour", "minute", "second")
    yield from (f"{name}({column}1)" for name, column in product(names, "tzwv"))
    for name in ("date_add", "date_sub", "dateadd", "add_months"):
        yield from (f"{name}({one}1, {other}1)" for one, other in product("tzw", "kbhil"))
        yield from (f"{name}(t1, {count})" for count in (0, 1, -1, 31, 400))
    for one, other in product("tzw", "tzw"):
        yield from (f"datediff({one}1, {other}2)", f"date_diff({one}1, {other}2)")
    units = ("year", "yyyy", "YY", "quarter", "month", "Mon", "mm", "week", "day", "dd", "hour")
    units += ("minute", "second", "millisecond", "microsecond", "century")
    for unit, one in product(units, "tzw"):
        yield from (f"trunc({one}1, '{unit}')", f"date_trunc('{unit}', {one}1)")
    yield from ("year(t1) = 2024 AND month(t1) < 3", "to_date(s1)", "last_day(date_add(t1, 1))")
    yield from (
        "date_add(t1, 0) >= '2024-02-01'",
        "'2024-2-1' < last_day(t1)",
        "coalesce(t1) <=> '2024'",
    )


def _patterns() -> Iterator[str]:
    patterns = (
        "a",
        "^a",
        "c$",
        "^a.*c$",
        "b|c",
        "[a-c]+",
        "[^a]",
        "\\\\d",
        "\\\\D+",
        "\\\\s",
        "\\\\S",
    )
    patterns += (
        "a?b",
        "(a)(b)?",
        "(ab|a)c",
        "\\\\w+",
        "\\\\W",
        ".",
        "a{2,3}",
        "x{40}",
        "a+?",
        "(a|b)*c",
    )
    patterns += (
        "[.,]",
        "\\\\.",
        "\u00e9",
        "\U0001f600",
        "a.c",
        "[a\\\\d-]",
        "",
        "x*",
        "(?:a|b)(c)",
        "$",
    )
    patterns += (
        "^$",
        "^.$",
        "a|^b",
        "(^a)",
        "a$|b",
        "[a-z&&[b]]",
        "a*+",
        "\\\\bab",
        "(?i)A",
        "%",
        "~#",
    )
    for pattern, one in product(patterns, ("s1", "u1", "v1", "y1")):
        yield f"{one} RLIKE '{pattern}'"
        yield f"regexp_replace({one}, '{pattern}', '<>')"
        yield from (f"regexp_extract({one}, '{pattern}', {group})" for group in (0, 1, 2))
    yield from ("regexp_like(s1, 'b')", "rlike(s1, 'b')", "regexp(s1, 'b')", "s1 NOT RLIKE 'b'")
    yield from ("regexp_extract(s1, '(b)')", "regexp_replace(s1, 'b', '$0')")


def _digests() -> Iterator[str]:
    names = ("md5", "sha1", "sha", "crc32", "base64", "hex")
    yield from (f"{name}({one}1)" for name, one in product(names, "sxycbhil"))
    yield from (f"sha2({one}1, {bits})" for one in "sxy" for bits in (0, 224, 256, 384, 512, 1))
    yield from (f"unhex({one}1)" for one in "suy")
    yield "unhex(hex(x1))"
    yield from (f"unbase64({text})" for text in ("s1", "u1", "y1", "hex(x1)", "base64(x1)"))
    yield from (f"unbase64(substring(hex(x1), 1, {k}))" for k in (1, 2, 3, 4, 5))
    for text in ("QR==", "QQ=", "QQ==\\n", "QU\\r\\nJD", "Q\\nR\\n=\\n=", "+/-_", "=", "QUI=x"):
        yield f"unbase64(nullif('{text}', s1))"
        yield f"unbase64(concat('{text}', left(s1, 1)))"
    columns = (*(f"{one}1" for one in _LETTERS + "xyuvc"), "ints", "words", "doubles", "parts")
    for name in ("hash", "xxhash64"):
        yield from (f"{name}({column})" for column in (*columns, "deep", "pairs"))
        yield from (f"{name}({one}1, {two}2)" for one, two in product("bdnqszt", "lfrswok"))
        yield f"{name}({', '.join(columns)})"
        yield from (f"{name}({constant})" for constant in (*_CONSTANTS, "'a'", "X'00'", "TRUE"))
        yield from (f"pmod({name}(s1), 16)", f"{name}(s1, NULL, k1) % 8", f"{name}()")


def _collections() -> Iterator[str]:
    lists = ("ints", "words", "doubles", "deep")
    names = ("size", "cardinality", "array_size", "map_keys", "map_values")
    yield from (f"{name}({column})" for name in names for column in (*lists, "pairs", "parts"))
    for index in (0, 1, 2, -1, -3, 7, "k1", "CAST(NULL AS INT)"):
        yield from (f"{column}[{index}]" for column in lists)
        yield from (f"element_at({column}, {index})" for column in lists)
        yield from (f"get({column}, {index})" for column in lists)
        yield from (f"try_element_at({column}, {index})" for column in lists)
        yield f"if(size(ints) > 3, element_at(ints, {index}), 0)"
    for key in ("'a'", "'b'", "'\u00e9'", "s1", "words[0]"):
        yield from (f"pairs[{key}]", f"try_element_at(pairs, {key})", f"get(pairs, {key})")
        yield from (f"element_at(pairs, {key})", f"map_contains_key(pairs, {key})")
        yield f"array_contains(words, {key})"
    for number in ("0", "1", "k1", "-1"):
        yield f"array_contains(ints, {number})"
    yield from (f"array_contains(doubles, {n})" for n in ("0D", "-0.0D", "CAST('NaN' AS DOUBLE)"))
    yield from (
        "array(k1, k2)",
        "array(s1, NULL, 'b')",
        "array(1, k1, 2.5)",
        "array(d1)",
        "array()",
    )
    yield from (f"coalesce({one}, {one})" for one in (*lists, "pairs", "parts"))
    yield from (f"if(o1, {one}, NULL)" for one in (*lists, "pairs", "parts"))
    yield from (f"CASE WHEN k1 > 0 THEN {one} WHEN k1 < 0 THEN NULL END" for one in lists)
    yield from ("coalesce(ints, array(k1, k2))", "nvl(parts, named_struct('u', 1L, 'v', s1))")
    yield from ("named_struct('a', k1, 'b', s1)", "struct(k1, s1)", "struct(parts.u, d1)")
    yield from ("named_struct('a', k1).a", "named_struct('a', ints, 'b', parts)", "struct(k1, k1)")
    yield from (
        "hash(named_struct('a', k1, 'b', s1))",
        "array(k1, k2)[1]",
        "parts.u",
        "parts.v",
        "coalesce(parts.u, 5)",
        "deep[0].u",
    )
    yield from ("size(array(k1, 2)) > 1", "pairs['a'] + 1", "upper(words[0])", "map_keys(pairs)[0]")


def _moved_times() -> Iterator[str]:
    amounts = (
        "1 DAY",
        "-3 DAYS",
        "2 WEEKS",
        "1 MONTH",
        "-1 MONTHS",
        "2 YEARS -1 MONTHS",
        "13 HOURS",
    )
    amounts += (
        "'1 day 2 hours'",
        "90 SECONDS",
        "-1 MICROSECOND",
        "'1-2' YEAR TO MONTH",
        "1 QUARTER",
    )
    for amount, one in product(amounts, "tzw"):
        yield from (f"{one}1 + INTERVAL {amount}", f"{one}1 - INTERVAL {amount}")
        yield f"INTERVAL {amount} + {one}1"
        yield f"{one}1 < {one}2 - INTERVAL {amount}"
    yield from (f"t1 {op} {one}1" for op in "+-" for one in "kbhil")
    yield from ("k1 + t1", "k1 - t1", "t1 + 1 - INTERVAL 1 MONTH", "t1 - t2 IS NULL", "t1 + 1L")


def _formatted_times() -> Iterator[str]:
    patterns = ("yyyy-MM-dd", "yyyyMMdd", "HH:mm:ss", "yyyy", "MM/dd/yyyy HH:mm", "yyyy-MM-dd'T'HH")
    patterns += ("y", "M", "E", "dd.MM.yyyy", "yyyy-MM-dd HH:mm:ss.SSS", "%Y", "")
    for pattern in patterns:
        yield from (f"date_format({one}1, '{pattern}')" for one in "tzw")
        yield from (f"from_unixtime({one}1, '{pattern}')" for one in "kl")
    yield from (f"from_unixtime({one}1)" for one in "kbhil")
    for name in ("unix_timestamp", "to_unix_timestamp", "to_timestamp", "timestamp"):
        yield from (f"{name}({one}1)" for one in "tzwvs")
    for unit in ("seconds", "millis", "micros"):
        yield from (f"timestamp_{unit}({one}1)" for one in "kbhil")
    for part in ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE", "SECOND"):
        yield from (f"extract({part} FROM {one}1)" for one in "tzw")
        yield from (f"date_part('{part.lower()}', {one}1)" for one in "tz")
    for side in ("BOTH", "LEADING", "TRAILING"):
        yield from (
            f"trim({side} 'a' FROM s1)",
            f"trim({side} FROM s1)",
            f"trim({side} ' a' FROM s2)",
        )


def _rounding() -> Iterator[str]:
    for one, scale in product(
        ("d1", "f1", "d1 / 3", "d1 * 1.005D", "k1 / 8", "k1 * 0.005D"), range(8)
    ):
        yield f"round({one}, {scale})"
    for one, other in product("bhilnm", "nm"):
        yield from (f"{one}1 % {other}2", f"{other}1 % {one}2", f"pmod({one}1, {other}2)")
    yield from (f"n1 % {constant}" for constant in _CONSTANTS)
    yield from ("d1 % n2", "pmod(n1, d2)", "m1 % 0.7", "pmod(m1, -0.7)", "k1 % n1")


def _parts_that_fail() -> Iterator[str]:
    """Yield expressions whose parts fail for rows for which Spark may not compute them."""
    for part in ("10 DIV k1", "10 DIV nvl(k1, 0)", "CAST(u1 AS INT)", "b1 + 100Y"):
        for operator in ("+", "-", "*", "/", "%", "DIV", "=", "<", "&"):
            yield from (f"k2 {operator} ({part})", f"({part}) {operator} k2")
        yield from (
            f"k2 IN (k3, {part})",
            f"({part}) IN (k2, k3)",
            f"k2 NOT IN (1, {part}, NULL)",
            f"nullif(k2, {part})",
            f"nullif(k2 <=> ({part}), NULL)",
            f"greatest(k2, {part})",
            f"k2 BETWEEN 0 AND {part}",
            f"k2 BETWEEN {part} AND 5",
            f"date_add(t1, {part}) > t2",
            f"make_date(2000 + nullif(k2, 5), {part}, 1) = t1",
            f"coalesce(k2, {part})",
            f"k2 > 1 AND ({part}) > 0",
            f"k2 > 1 OR ({part}) > 0",
        )


def _casts() -> Iterator[str]:
    names = ("tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean", "date")
    yield from (f"{name}({one}1)" for name, one in product(names, "bldnsuvot"))
    targets = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(5,2)")
    targets += ("DECIMAL(38,0)", "DECIMAL(38,18)", "DECIMAL(38,38)", "STRING", "BOOLEAN", "DATE")
    targets += ("TIMESTAMP", "TIMESTAMP_NTZ")
    for target, one in product(targets, _LETTERS + "uv"):
        yield f"CAST({one}1 AS {target})"
        yield f"TRY_CAST({one}1 AS {target})"
    yield from (f"TRY_CAST({one}1 AS INT) = 5" for one in "suv")
    yield from (f"CAST('{text}' AS DOUBLE)" for text in ("5\\u007f", "\\u001f5 ", "\\u007f5"))
    yield from (f"CAST('{text}' AS INT)" for text in ("5\\u007f", "\\u001f5 ", "\\u007f5"))
    yield from (f"CAST(l1 AS BIGINT) IN (1e0, {n}BD)" for n in (2**63 - 1, 2**53 + 1, 7))
    yield from (
        f"n1 {op} {whole}" for op in "+/" for whole in ("int(3)", "positive(3)", "round(3)")
    )
    yield from ("CAST('5' AS BIGINT)", "CAST(1.5 AS DECIMAL(10,2)) + n1", "CAST(n1 AS INT) = 2")
    for constant in ("9223372036854775808", "-9223372036854775809"):
        yield from (f"l1 + 0L {op} {constant}" for op in ("<", ">=", "=", "<>"))
        yield f"CAST(i1 AS BIGINT) >= {constant}"


def _rounded_twice() -> Iterator[str]:
    """Yield whole numbers that are cast to floats, and then become doubles."""
    for cast in ("CAST(l1 AS FLOAT)", "float(i1)", "TRY_CAST(l1 AS FLOAT)", "float(h1)"):
        yield from (
            cast,
            f"CAST({cast} AS DOUBLE)",
            f"{cast} + 0e0",
            f"{cast} * {cast}",
            f"{cast} / 3",
            f"{cast} = {2**31 - 1}",
            f"{cast} IN ({2**31 - 1}, 1e0)",
            f"coalesce({cast}, 0e0)",
            f"if(o1, {cast}, 0e0)",
            f"greatest({cast}, d2)",
            f"sqrt({cast})",
            f"CAST(nvl({cast}, 1.5F) AS DOUBLE)",
            f"CAST(-{cast} AS DOUBLE)",
        )
    yield from ("CAST(CAST(16777217 AS FLOAT) AS DOUBLE)", "float(16777217) + d1")


def answers_here(
    sql: str, expected: list[str | bool | None]
) -> tuple[str, list[str | bool | None]]:
    """Return the type and the answers; rows with an expected error are computed one by one."""
    value = parse_value(sql, SCHEMA)
    kept = [index for index, item in enumerate(expected) if item is not ERROR]
    found = list(expected)
    try:
        answers = value.compute(ODD_ROWS.take(pa.array(kept, pa.int64())))
    except UsageError as error:  # some values are left to Spark
        assert error.kind == "OPTIMIST_NEEDS_SPARK"
        kept = []
        answers = value.compute(ODD_ROWS.slice(0, 0))
    assert answers.type == to_arrow_type(value.data_type), (answers.type, value.data_type)
    for index, text in zip(kept, as_texts(answers), strict=True):
        found[index] = text
    for index in sorted(set(range(len(expected))).difference(kept)):
        found[index] = _answer_of_row(value, index, expected[index])
    return str(value.data_type), found


def _answer_of_row(value: Value, index: int, wanted: str | bool | None) -> str | bool | None:
    """Return the answer for one row, or the wanted one if only Spark has it."""
    try:
        return as_texts(value.compute(ODD_ROWS.slice(index, 1)))[0]
    except SchemaError:
        return ERROR
    except UsageError:
        return wanted
