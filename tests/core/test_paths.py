import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.paths import (
    join,
    name_of,
    normalize,
    parent_of,
    resolve_data_path,
    scheme_of,
    strip_file_scheme,
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
    ("reference", "path"),
    [
        ("part-0.parquet", "s3://b/t/part-0.parquet"),
        ("month=1/part%200.parquet", "s3://b/t/month=1/part 0.parquet"),
        ("a=x%2520y/p.parquet", "s3://b/t/a=x%20y/p.parquet"),
        ("/elsewhere/p.parquet", "/elsewhere/p.parquet"),
        ("s3://other/t/p%20q.parquet", "s3://other/t/p q.parquet"),
        ("file:///elsewhere/p.parquet", "file:///elsewhere/p.parquet"),
        ("time=10%3A30/p.parquet", "s3://b/t/time=10:30/p.parquet"),
    ],
)
def test_data_path_is_decoded_once_and_taken_from_the_table_unless_absolute(reference, path):
    assert resolve_data_path("s3://b/t", reference) == path
