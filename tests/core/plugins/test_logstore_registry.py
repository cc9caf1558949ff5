import sys
import threading
from itertools import permutations

import pytest

from optimist.core.errors import ConfigError
from optimist.core.options.engine import EngineOptions
from optimist.core.plugins import logstore_registry
from optimist.core.plugins.logstore_registry import choose_store, find_store

LOCAL = "optimist.logstores:LocalLogStore"
MEMORY = "optimist.logstores:MemoryLogStore"
FSSPEC = "optimist.logstores:FsspecLogStore"
AZURE = "optimist.logstores:AzureLogStore"
GCS = "optimist.logstores:GCSLogStore"
HDFS = "optimist.logstores:HDFSLogStore"
S3 = "optimist.logstores:S3LogStore"
CLASS_KEYS = ("spark.delta.logStore.class", "delta.logStore.class")

OWN_MODULE = """
from optimist.logstores import MemoryLogStore

class Own(MemoryLogStore):
    pass

class Outer:
    class Inner(MemoryLogStore):
        pass

class Abstract(MemoryLogStore.__mro__[1]):
    def delete(self, path): ...

class Failing(MemoryLogStore):
    def __init__(self, options):
        raise KeyError("hunter2")

class TakesNothing(MemoryLogStore):
    def __init__(self):
        super().__init__()

class NoStore:
    pass

def function():
    pass
"""


@pytest.fixture(autouse=True)
def fresh_cache(monkeypatch):
    monkeypatch.setattr(logstore_registry, "_STORES", logstore_registry._StoreCache())


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Write a module that can be imported by the name given."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name, text):
        (tmp_path / f"{name}.py").write_text(text)

    write("own_stores", OWN_MODULE)
    yield write
    for name in set(sys.modules) - before:
        if (tmp_path / f"{name}.py").exists():
            del sys.modules[name]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution that has only a name and entry points."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name, entry_points):
        directory = tmp_path / f"{name}-1.0.dist-info"
        directory.mkdir()
        (directory / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (directory / "entry_points.txt").write_text(entry_points)

    return write


def refusal(path, options):
    with pytest.raises(ConfigError) as caught:
        find_store(path, options)
    return caught.value


# Defaults


@pytest.mark.parametrize(
    ("path", "class_path"),
    [
        ("/data/t", LOCAL),
        ("relative/t", LOCAL),
        ("file:/data/t", LOCAL),
        ("file:///data/t", LOCAL),
        ("FILE:///data/t", LOCAL),
        ("memory://t", MEMORY),
        ("Memory:/t", MEMORY),
        *((f"{scheme}://bucket/t", S3) for scheme in ("s3", "s3a", "s3n")),
        ("abfss://c@account.dfs.core.windows.net/t", AZURE),
        *((f"{scheme}://container/t", AZURE) for scheme in ("az", "abfs", "wasb", "wasbs")),
        ("gs://bucket/t", GCS),
        *((f"{scheme}://host/t", HDFS) for scheme in ("hdfs", "viewfs")),
        ("nosuch://bucket/t", FSSPEC),
        ("simplecache::s3://bucket/t", FSSPEC),
    ],
)
def test_without_a_key_the_scheme_decides(path, class_path):
    choice = choose_store(path, {})
    assert choice.class_path == class_path
    assert "conf key" not in choice.reason


def test_scheme_without_a_driver_says_what_is_missing_on_use():
    store = find_store("box://bucket/t", {})
    with pytest.raises(ConfigError) as caught:
        store.read_bytes("box://bucket/t/0")
    assert caught.value.kind == "OPTIMIST_MISSING_PACKAGE"
    assert "boxfs" in str(caught.value)


# The keys


@pytest.mark.parametrize("key", CLASS_KEYS)
@pytest.mark.parametrize("path", ["/data/t", "s3a://bucket/t", "nosuch://t"])
def test_class_key_serves_every_path(key, path):
    assert choose_store(path, {key: "memory"}).class_path == MEMORY


@pytest.mark.parametrize("prefix", ["spark.", ""])
def test_scheme_key_serves_its_scheme_only(prefix):
    options = {f"{prefix}delta.logStore.s3a.impl": "memory"}
    assert choose_store("s3a://bucket/t", options).class_path == MEMORY
    assert choose_store("S3A://bucket/t", options).class_path == MEMORY
    assert choose_store("s3://bucket/t", options).class_path == S3
    assert choose_store("/data/t", options).class_path == LOCAL


def test_scheme_key_for_file_serves_plain_paths():
    assert choose_store("/data/t", {"delta.logStore.file.impl": "memory"}).class_path == MEMORY


def test_scheme_in_a_key_may_be_in_capitals():
    assert choose_store("s3a://b", {"delta.logStore.S3A.impl": "memory"}).class_path == MEMORY


def test_equal_values_under_both_spellings_are_fine():
    options = dict.fromkeys(CLASS_KEYS, "memory")
    assert choose_store("/data/t", options).class_path == MEMORY
    options = {"delta.logStore.gs.impl": "local", "spark.delta.logStore.gs.impl": "local"}
    assert choose_store("gs://b/t", options).class_path == LOCAL


@pytest.mark.parametrize("class_key", CLASS_KEYS)
@pytest.mark.parametrize("scheme_key", ["spark.delta.logStore.gs.impl", "delta.logStore.s3.impl"])
def test_class_key_and_scheme_key_together_are_refused(class_key, scheme_key):
    error = refusal("/data/t", {class_key: "local", scheme_key: "local"})
    assert error.kind == "DELTA_INVALID_LOGSTORE_CONF"
    assert error.fields["class_keys"] == (class_key,)
    assert error.fields["scheme_keys"] == (scheme_key,)


@pytest.mark.parametrize(
    "keys", [CLASS_KEYS, ("delta.logStore.s3a.impl", "spark.delta.logStore.s3a.impl")]
)
@pytest.mark.parametrize("path", ["s3a://bucket/t", "/data/t"])
def test_spellings_that_differ_are_refused(keys, path):
    for order in permutations(zip(keys, ("local", "memory"), strict=True)):
        error = refusal(path, dict(order))
        assert error.kind == "DELTA_INCONSISTENT_LOGSTORE_CONFS"
        assert set(error.fields["keys"]) == set(keys)


def test_conflict_of_keys_is_found_before_spellings_that_differ():
    options = dict(zip(CLASS_KEYS, ("local", "memory"), strict=True))
    options["delta.logStore.gs.impl"] = "local"
    assert refusal("/data/t", options).kind == "DELTA_INVALID_LOGSTORE_CONF"


# The values


@pytest.mark.parametrize(
    ("value", "class_path"),
    [
        ("local", LOCAL),
        (" memory ", MEMORY),
        ("fsspec", FSSPEC),
        (MEMORY, MEMORY),
        (MEMORY.replace(":", "."), MEMORY),
        ("io.delta.storage.LocalLogStore", LOCAL),
        ("org.apache.spark.sql.delta.storage.LocalLogStore", LOCAL),
        ("package.module:Outer.Inner", "package.module:Outer.Inner"),
    ],
)
def test_value_in_every_form_names_its_class(value, class_path):
    choice = choose_store("/data/t", {"spark.delta.logStore.class": value})
    assert choice.class_path == class_path
    assert choice.reason == f"conf key spark.delta.logStore.class={value.strip()}"


@pytest.mark.parametrize(
    "name",
    [
        "io.delta.storage.DelegatingLogStore",
        "io.delta.storage.NoSuchLogStore",
        "io.acme.delta.OwnLogStore",
        "com.acme.OwnLogStore",
        "org.apache.spark.sql.delta.storage.NoSuchLogStore",
    ],
)
def test_java_class_without_counterpart_is_refused_by_name(name):
    error = refusal("/t", {"spark.delta.logStore.class": name})
    assert error.kind == "OPTIMIST_UNSUPPORTED_LOGSTORE"
    assert name in str(error)
    assert "io.delta.storage.LocalLogStore" in str(error)


@pytest.mark.parametrize("value", ["", "lokal", "a b", "own_stores:", ":Own", "own-stores:Own"])
def test_value_that_names_nothing_is_refused(value):
    error = refusal("/t", {"delta.logStore.class": value})
    assert error.kind == "OPTIMIST_UNKNOWN_LOGSTORE"
    assert error.fields["key"] == "delta.logStore.class"
    assert "local" in str(error)


def test_own_classes_are_built(modules):
    for name in ("Own", "Outer.Inner"):
        store = find_store("/t", {"delta.logStore.class": f"own_stores:{name}"})
        assert type(store).__qualname__ == name


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("own_stores:NoStore", "OPTIMIST_NOT_A_LOGSTORE"),
        ("own_stores:function", "OPTIMIST_NOT_A_LOGSTORE"),
        ("own_stores:Abstract", "OPTIMIST_NOT_A_LOGSTORE"),
        ("own_stores:Failing", "OPTIMIST_LOGSTORE_NOT_BUILT"),
        ("own_stores:TakesNothing", "OPTIMIST_LOGSTORE_NOT_BUILT"),
        ("own_stores:Missing", "OPTIMIST_LOGSTORE_NOT_IMPORTED"),
        ("own_stores:Own.Missing", "OPTIMIST_LOGSTORE_NOT_IMPORTED"),
        ("no_such_module:Own", "OPTIMIST_LOGSTORE_NOT_IMPORTED"),
        ("own_stores.below:Own", "OPTIMIST_LOGSTORE_NOT_IMPORTED"),
        ("broken_module:Own", "OPTIMIST_LOGSTORE_NOT_IMPORTED"),
        ("needy_module:Own", "OPTIMIST_LOGSTORE_NOT_IMPORTED"),
    ],
)
def test_class_that_cannot_be_used_is_one_error_naming_key_and_value(modules, value, kind):
    modules("broken_module", "raise RuntimeError('broken')")
    modules("needy_module", "import no_such_package")
    error = refusal("/t", {"spark.delta.logStore.file.impl": value})
    assert error.kind == kind
    assert f"spark.delta.logStore.file.impl={value}" in str(error)
    assert "hunter2" not in str(error)


def test_abstract_class_names_what_it_does_not_implement(modules):
    error = refusal("/t", {"delta.logStore.class": "own_stores:Abstract"})
    assert "put_if_absent" in str(error)
    assert "delete" not in str(error)


def test_config_error_of_a_store_comes_through_as_it_is():
    error = refusal("/t", {"delta.logStore.class": "local", "optimist.store.local.fsync": "no"})
    assert error.kind == "OPTIMIST_UNKNOWN_OPTION"


def test_store_that_failed_once_can_be_found_once_it_is_mended(modules):
    refusal("/t", {"delta.logStore.class": "later_module:Own"})
    modules("later_module", OWN_MODULE)
    sys.path_importer_cache.clear()
    store = find_store("/t", {"delta.logStore.class": "later_module:Own"})
    assert type(store).__qualname__ == "Own"


# Entry points of others


def test_store_of_another_package_is_found_by_short_name_scheme_and_java_name(install, modules):
    install(
        "other",
        "[optimist.logstores]\nmine = own_stores:Own\n"
        "[optimist.logstores.schemes]\nmine = own_stores:Own\n"
        "[optimist.logstores.java]\nio.delta.storage.MineLogStore = own_stores:Own\n",
    )
    for path, options in (
        ("/t", {"delta.logStore.class": "mine"}),
        ("mine://t", {}),
        ("/t", {"delta.logStore.class": "io.delta.storage.MineLogStore"}),
    ):
        assert type(find_store(path, options)).__qualname__ == "Own"


def test_missing_package_of_an_extra_gives_the_pip_line(install, modules):
    modules("cloudy", "import no_such_sdk")
    install("optimist-cloudy", "[optimist.logstores.schemes]\ncloudy = cloudy:Store [sdk]\n")
    error = refusal("cloudy://bucket/t", {})
    assert error.kind == "OPTIMIST_MISSING_PACKAGE"
    assert "pip install 'optimist-cloudy[sdk]'" in str(error)
    assert choose_store("cloudy://b").requirement == "'optimist-cloudy[sdk]'"


def test_two_packages_that_claim_one_name_are_refused(install):
    install("one", "[optimist.logstores]\nmine = own_stores:Own\n")
    install("two", "[optimist.logstores]\nmine = other_stores:Own\n")
    error = refusal("/t", {"delta.logStore.class": "mine"})
    assert error.kind == "OPTIMIST_AMBIGUOUS_LOGSTORE"
    assert "own_stores:Own" in str(error)
    assert "other_stores:Own" in str(error)


# One instance per class and options


def test_same_options_give_the_same_store():
    assert find_store("/a", {}) is find_store("file:///b", {})
    options = {"spark.hadoop.fs.s3a.endpoint": "x"}
    assert find_store("/a", options) is find_store("/b", {**options, "spark.app.name": "other"})


@pytest.mark.parametrize(
    "key",
    [
        "fs.s3a.endpoint",
        "spark.hadoop.fs.s3a.endpoint",
        "dfs.nameservices",
        "spark.optimist.store.mine.token",
        "optimist.store.mine.token",
        "io.delta.storage.S3DynamoDBLogStore.ddb.region",
        "spark.io.delta.storage.S3DynamoDBLogStore.ddb.region",
    ],
)
def test_store_option_reaches_the_store_and_tells_stores_apart(key):
    one, two = find_store("/a", {key: "1"}), find_store("/a", {key: "2"})
    assert one is not two
    assert (one.options[key], two.options[key]) == ("1", "2")


def test_other_options_do_not_reach_the_store():
    store = find_store("/a", {"spark.databricks.delta.commitLock.enabled": "true"})
    assert dict(store.options) == {}


def test_threads_that_ask_together_get_one_store(modules):
    modules(
        "slow_store",
        "from optimist.logstores import MemoryLogStore\n"
        "built = []\n"
        "class Slow(MemoryLogStore):\n"
        "    def __init__(self, options):\n"
        "        super().__init__(options)\n"
        "        built.append(self)\n",
    )
    barrier = threading.Barrier(8)
    found = []

    def find():
        barrier.wait(30)
        found.append(find_store("/a", {"delta.logStore.class": "slow_store:Slow"}))

    threads = [threading.Thread(target=find) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len(set(map(id, found))) == 1
    assert len(sys.modules["slow_store"].built) == 1


def test_store_may_look_for_the_store_that_it_wraps(modules):
    modules(
        "wrapping",
        "from optimist.core.plugins.logstore_registry import find_store\n"
        "from optimist.logstores import MemoryLogStore\n"
        "class Wrapping(MemoryLogStore):\n"
        "    def __init__(self, options):\n"
        "        super().__init__(options)\n"
        "        self.inner = find_store('/a', {'delta.logStore.class': 'local'})\n",
    )
    store = find_store("/a", {"delta.logStore.class": "wrapping:Wrapping"})
    assert type(store.inner).__qualname__ == "LocalLogStore"


@pytest.mark.again
def test_cache_forgets_the_longest_unused():
    first = find_store("/a", {"fs.n": "first"})
    kept = find_store("/a", {"fs.n": "kept"})
    for number in range(200):
        find_store("/a", {"fs.n": str(number)})
        assert find_store("/a", {"fs.n": "kept"}) is kept
    assert find_store("/a", {"fs.n": "first"}) is not first
    assert len(logstore_registry._STORES._stores) <= 64


def test_keys_of_stores_are_no_unknown_options_of_the_engine():
    EngineOptions.from_options(
        {"optimist.store.fsspec.key": "x", "spark.optimist.store.mine.token": "x"}
    )
    with pytest.raises(ConfigError):
        EngineOptions.from_options({"spark.optimist.stores.mine": "x"})
