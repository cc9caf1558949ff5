"""The one list of Catalyst expression classes that SQL in a table's log may use.

Anybody who can write into a table's folder can write this SQL, and the next writer's Spark runs it.
So a class is on the list only if its value depends on the row alone, or on the clock, which stands
still within a query. A class is not on the list if it calls code by name, reads a file, knows the
session, the user or the machine, or gives another answer each time. Classes of a later Spark are
not on the list until somebody has reviewed them.

These look harmless but are left out: functions that read or make several rows, XML (its parsers
load what documents name), Avro and Protobuf (they read files), encryption (it draws random numbers,
and keys must not be in a log).
"""

from __future__ import annotations

__all__ = ["is_allowed", "is_allowed_before_analysis"]

_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions."
_PARSED = frozenset(
    f"org.apache.spark.sql.catalyst.{name}"
    for name in (
        "analysis.UnresolvedAttribute",
        "analysis.UnresolvedExtractValue",
        "analysis.UnresolvedFunction",
        "expressions.UnresolvedNamedLambdaVariable",
    )
)
"""Nodes of a parsed tree that analysis replaces. Functions are judged by their names until then."""

_GROUPS = {
    "the frame": """
        Literal AttributeReference Alias Cast Collate CollateExpressionBuilder Collation
        ResolvedCollation TypeOf With CommonExpressionDef CommonExpressionRef TryEval
        LambdaFunction NamedLambdaVariable SortOrder
        GetStructField GetArrayItem GetArrayStructFields GetMapValue
    """,
    "logic": """
        And Or Not If CaseWhen Coalesce Nvl Nvl2 NullIf NullIfResult NullIfZero ZeroIfNull NaNvl
        TypedNullLiteral IsNull IsNotNull IsNaN EqualTo EqualNullSafe EqualNull LessThan
        LessThanOrEqual GreaterThan GreaterThanOrEqual Between In Greatest Least
    """,
    "numbers": """
        Add Subtract Multiply Divide IntegralDivide Remainder Pmod UnaryMinus UnaryPositive Abs
        TryAdd TrySubtract TryMultiply TryDivide TryMod
        Round BRound Ceil Floor RoundCeil RoundFloor CeilExpressionBuilder FloorExpressionBuilder
        Rint Signum Sqrt Cbrt Pow Exp Expm1 Log Log10 Log1p Log2 Logarithm Factorial Hypot
        EulerNumber Pi Sin Sinh Asin Asinh Cos Cosh Acos Acosh Tan Tanh Atan Atan2 Atanh Cot Sec
        Csc ToDegrees ToRadians WidthBucket Bin Hex Unhex Conv ToNumber TryToNumber CheckOverflow
        BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitwiseCount BitwiseGet
        ShiftLeft ShiftRight ShiftRightUnsigned
    """,
    "texts": """
        Concat ConcatWs Upper Lower InitCap Length OctetLength BitLength Ascii Chr Reverse Left
        Right Substring SubstringIndex SplitPart StringSplit StringReplace StringTranslate Overlay
        StringTrim StringTrimBoth StringTrimLeft StringTrimRight StringLPad StringRPad BinaryPad
        LPadExpressionBuilder RPadExpressionBuilder StringRepeat StringSpace
        StringInstr StringInstrWithOccurrence StringInstrExpressionBuilder StringLocate FindInSet
        Elt Contains StartsWith EndsWith BinaryPredicate ContainsExpressionBuilder
        StartsWithExpressionBuilder EndsWithExpressionBuilder Levenshtein SoundEx FormatNumber
        FormatString Luhncheck Mask MaskExpressionBuilder Quote ToCharacter ToCharacterBuilder
        Like ILike LikeAll LikeAny NotLikeAll NotLikeAny RLike RegExpExtract RegExpExtractAll
        RegExpReplace RegExpCount RegExpInStr RegExpSubStr
        Base64 UnBase64 Encode Decode StringDecode ToBinary TryToBinary
        IsValidUTF8 MakeValidUTF8 ValidateUTF8 TryValidateUTF8
        ParseUrl TryParseUrl UrlEncode UrlDecode TryUrlDecode
    """,
    "hashes": "Murmur3Hash XxHash64 Crc32 Md5 Sha1 Sha2",
    "times": """
        Year Quarter Month DayOfMonth DayOfWeek DayOfYear WeekDay WeekOfYear YearOfWeek DayName
        MonthName Hour Minute Second SecondWithFraction
        HourExpressionBuilder MinuteExpressionBuilder SecondExpressionBuilder
        Extract DatePartExpressionBuilder ExtractIntervalYears ExtractIntervalMonths
        ExtractIntervalDays ExtractIntervalHours ExtractIntervalMinutes ExtractIntervalSeconds
        ExtractANSIIntervalYears ExtractANSIIntervalMonths ExtractANSIIntervalDays
        ExtractANSIIntervalHours ExtractANSIIntervalMinutes ExtractANSIIntervalSeconds
        DateAdd DateSub DateDiff DateAddInterval DateAddYMInterval AddMonths MonthsBetween LastDay
        NextDay DatetimeSub SubtractDates SubtractTimestamps TimeAdd TimestampAdd TimestampDiff
        TimestampAddInterval TimestampAddYMInterval TruncDate TruncTimestamp
        DateFormatClass ParseToDate ParseToTimestamp GetTimestamp TryToDateExpressionBuilder
        TryToTimestampExpressionBuilder ParseToTimestampLTZExpressionBuilder
        ParseToTimestampNTZExpressionBuilder
        MakeDate MakeTimestamp MakeTimestampNTZ MakeTimestampFromDateTime
        MakeTimestampExpressionBuilder MakeTimestampLTZExpressionBuilder
        MakeTimestampNTZExpressionBuilder DateFromUnixDate FromUnixTime UnixTimestamp
        ToUnixTimestamp UnixDate UnixSeconds UnixMillis UnixMicros SecondsToTimestamp
        MillisToTimestamp MicrosToTimestamp FromUTCTimestamp ToUTCTimestamp ConvertTimezone
        MakeInterval MakeDTInterval MakeYMInterval MultiplyInterval DivideInterval
        MultiplyDTInterval DivideDTInterval MultiplyYMInterval DivideYMInterval
    """,
    "the clock, which stands still within a query": """
        CurrentDate CurrentTimestamp LocalTimestamp Now CurDateExpressionBuilder
        CurrentTimestampExpressionBuilder LocalTimestampExpressionBuilder NowExpressionBuilder
    """,
    "structs, arrays and maps": """
        CreateNamedStruct CreateArray CreateMap Size ElementAt TryElementAt Get ArraySize
        ArrayContains ArrayPosition ArrayDistinct ArrayExcept ArrayIntersect ArrayUnion ArrayJoin
        ArrayMax ArrayMin ArrayRemove ArrayAppend ArrayPrepend ArrayInsert ArrayCompact ArrayRepeat
        ArraysOverlap ArraysZip Flatten Slice SortArray Sequence
        ArrayTransform ArrayFilter ArrayExists ArrayForAll ArrayAggregate ArraySort ZipWith
        MapKeys MapValues MapEntries MapConcat MapContainsKey MapFromArrays MapFromEntries
        StringToMap MapFilter MapZipWith TransformKeys TransformValues
    """,
    "JSON": """
        GetJsonObject JsonToStructs StructsToJson SchemaOfJson LengthOfJsonArray JsonObjectKeys
    """,
}
_ALLOWED = frozenset(
    f"{_EXPRESSIONS}{name}" for names in _GROUPS.values() for name in names.split()
)


def is_allowed(class_name: str) -> bool:
    """Check whether an analysed expression may hold nodes of this class.

    A function may be called if its class, as Spark's function registry names it, is allowed.

    Args:
        class_name: The class with its package.
    """
    return class_name in _ALLOWED


def is_allowed_before_analysis(class_name: str) -> bool:
    """Check whether a tree of Spark's parser may hold nodes of this class."""
    return class_name in _PARSED or (is_allowed(class_name) and class_name not in _NO_SQL)


# Analysis adds these nodes; a text that holds one itself (`x AS y`) is not a plain value.
_NO_SQL = frozenset({f"{_EXPRESSIONS}Alias", f"{_EXPRESSIONS}AttributeReference"})
