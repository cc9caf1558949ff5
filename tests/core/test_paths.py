import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.paths import (
    join,
    name_of,
    normalize,
    parent_of,
    scheme_of,
    split_url,
    strip_file_scheme,
    without_dots,
)

NAMES = st.text(
    st.characters(blacklist_characters="/\\:", blacklist_categories=("Cs",)), min_size=1
)


@pytest.mark.parametrize(
    ("path", "scheme"),
    [
        ("/data/t", ""),
        ("relative/t", ""),
        ("", ""),
        ("/data/a:b/t", ""),
        ("a:b/t", ""),
        ("/odd/s3://inside", ""),
        ("1s3://t", ""),
        ("file:/t", "file"),
        ("file:///t", "file"),
        ("S3A://bucket/t", "s3a"),
        ("memory:/t", "memory"),
        ("abfss://c@account.dfs.core.windows.net/t", "abfss"),
        ("s3://bucket/time=10:30/t", "s3"),
        ("simplecache::s3://bucket/t", "simplecache"),
    ],
)
def test_scheme_is_what_stands_before_the_first_colon_of_a_url(path, scheme):
    assert scheme_of(path) == scheme


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("/data/t/", "/data/t"),
        ("/data/t///", "/data/t"),
        ("s3://bucket/t/", "s3://bucket/t"),
        ("/data/t", "/data/t"),
        ("/", "/"),
        ("file:///", "file:///"),
        ("memory://", "memory://"),
    ],
)
def test_normal_form_has_no_trailing_slash_unless_it_is_a_root(path, normal):
    assert normalize(path) == normal
    assert normalize(normal) == normal


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("FILE:///a/b", "/a/b"),
        ("/a/b", "/a/b"),
        ("a/b", "a/b"),
        ("file:///a%20b#c", "/a%20b#c"),
        ("s3://bucket/b", "s3://bucket/b"),
        ("memory:/b", "memory:/b"),
    ],
)
def test_file_url_means_the_plain_path(path, plain):
    assert strip_file_scheme(path) == plain


@pytest.mark.parametrize("parent", ["/t", "/t/", "s3://bucket/t", "relative", "relative//"])
def test_joined_path_has_one_slash_between_its_parts(parent):
    joined = join(parent, "_delta_log", "0.json")
    assert joined == parent.rstrip("/") + "/_delta_log/0.json"


@given(st.sampled_from(["/t", "s3://bucket/t", "relative", "file:///t"]), NAMES)
def test_parent_and_name_take_apart_what_join_put_together(parent, name):
    assert parent_of(join(parent, name)) == parent
    assert name_of(join(parent, name)) == name
    assert name_of(join(parent, name) + "/") == name


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("/a/b", ("", "", "/a/b")),
        ("a:b/c", ("", "", "a:b/c")),
        ("S3A://b/k", ("s3a", "b", "/k")),
        ("s3://b", ("s3", "b", "")),
        ("hdfs:///a", ("hdfs", "", "/a")),
        ("hdfs:/a//b", ("hdfs", "", "/a//b")),
        ("x::memory://a/b", ("x", "", ":memory://a/b")),
    ],
)
def test_a_url_is_taken_apart(path, parts):
    assert split_url(path) == parts


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("/a/./b/../c", "/a/c"),
        ("s3://b/t/../x", "s3://b/x"),
        ("s3://b/t/../../x", None),
        ("memory:/a/../b", "memory:/b"),
        ("/..", None),
        ("/a//..//b", "/b"),
    ],
)
def test_dots_are_followed_by_their_text(path, plain):
    assert without_dots(path) == plain
