"""DELETE, UPDATE and MERGE on Spark, killed between any two steps: before or after, whole.

A process that dies leaves the disk as it is. So before each step that changes the disk, of Python's
or of the JVM's, the table is copied, and each copy is a table whose writer has died there.
"""

from __future__ import annotations

import os
import zipfile

import pytest

from optimist.core import DeltaLog
from optimist.core.data.storage.new_file import _LocalFile
from optimist.core.data.vectors import vector_writer
from optimist.spark import DeltaTable
from optimist.spark.session.jvm import Jvm
from row_histories import DEFAULTS, as_table
from whole_commands import AFTER, ensure_whole

IN_DRIVER = "spark.optimist.spark.driverShortcut.maxBytes"
WATCHED = "optimist.steps.WatchedFileSystem"
JAVA = """
package optimist.steps;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** Copies a directory before each call that changes the disk. */
public class WatchedFileSystem extends LocalFileSystem {
  private static File watched;
  private static File copies;
  private static int count;

  public static synchronized void watch(String directory, String target) {
    watched = directory == null ? null : new File(directory);
    copies = new File(target);
    count = 0;
  }

  public static synchronized void step() throws IOException {
    if (watched != null) copy(watched, new File(copies, String.valueOf(count++)));
  }

  private static void copy(File from, File to) throws IOException {
    File[] inner = from.listFiles();
    if (inner != null) {
      to.mkdirs();
      for (int at = 0; at < inner.length; at++) copy(inner[at], new File(to, inner[at].getName()));
    } else {
      try {
        Files.copy(from.toPath(), to.toPath());
      } catch (NoSuchFileException error) {
        // another task has renamed it
      }
    }
  }

  public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite,
      int buffer, short replication, long block, Progressable progress) throws IOException {
    step();
    return super.create(path, permission, overwrite, buffer, replication, block, progress);
  }

  public boolean rename(Path from, Path to) throws IOException {
    step();
    return super.rename(from, to);
  }

  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    step();
    return super.mkdirs(path, permission);
  }

  public boolean mkdirs(Path path) throws IOException {
    step();
    return super.mkdirs(path);
  }

  public boolean delete(Path path, boolean recursive) throws IOException {
    step();
    return super.delete(path, recursive);
  }
}
"""


@pytest.fixture(scope="session")
def watched_files(spark, tmp_path_factory):
    """The class, known to Spark's class loader."""
    jvm = Jvm.of(spark)
    loader = jvm.root.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.root.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.setTargetVersion(8)
    compiler.cook(JAVA)
    jar, classes = tmp_path_factory.mktemp("java") / "steps.jar", compiler.getBytecodes()
    with zipfile.ZipFile(jar, "w") as archive:
        for name in classes:
            archive.writestr(f"{name.replace('.', '/')}.class", bytes(classes.get(name)))
    loader.addURL(jvm.root.java.io.File(str(jar)).toURI().toURL())
    return jvm.root.optimist.steps.WatchedFileSystem


@pytest.fixture
def steps(spark, watched_files, monkeypatch, tmp_path):
    """Runs work on a table; the copies of the table before each of its steps, in their order."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    keys = {"fs.file.impl": WATCHED, "fs.file.impl.disable.cache": "true"}
    for key, value in keys.items():
        hadoop.set(key, value)

    def run(path, work):
        copies = tmp_path / "copies"
        copies.mkdir()
        with monkeypatch.context() as patched:
            for owner, name in [
                *((os, name) for name in ("open", "link", "unlink", "remove", "replace", "rename")),
                *((os, name) for name in ("mkdir", "rmdir")),
                *((_LocalFile, name) for name in ("__init__", "publish")),
            ]:
                patched.setattr(owner, name, stepping(getattr(owner, name)))
            watched_files.watch(str(path), str(copies))
            try:
                work()
                watched_files.step()
            finally:
                watched_files.watch(None, "")
        return sorted(copies.iterdir(), key=lambda copy: int(copy.name))

    def stepping(function):
        def step(*arguments, **more):
            watched_files.step()
            return function(*arguments, **more)

        return step

    yield run
    for key in keys:
        hadoop.unset(key)


def delete(table, spark):
    table.delete("id = 1 OR id = 4")


def update(table, spark):
    table.update("id = 1 OR id = 4", {"v": "v + 10"})


def merge(table, spark):
    source = spark.createDataFrame(as_table({1: 100, 4: 101, 7: 102})).alias("s")
    builder = table.alias("t").merge(source, "t.id = s.id").whenMatchedDelete("s.v = 100")
    builder.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


# Each takes the table to what `whole_commands` says.
COMMANDS = {"delete": delete, "update": update, "merge": merge}


def contents(path):
    return {(str(file.relative_to(path)), file.stat().st_size) for file in path.rglob("*")}


@pytest.mark.parametrize("vectors", ["true", "false"])
@pytest.mark.parametrize("command", sorted(AFTER))
def test_a_killed_command_leaves_the_table_before_or_after(
    spark, conf, steps, monkeypatch, tmp_path, command, vectors
):
    conf(IN_DRIVER, "0")
    monkeypatch.setattr(vector_writer, "_INLINE_BYTES", 0)
    path = tmp_path / "table"
    properties = {"enableDeletionVectors": vectors, "enableChangeDataFeed": "true"}
    log = DeltaLog.for_path(str(path), {f"{DEFAULTS}{k}": v for k, v in properties.items()})
    for first in (0, 3):
        log.append(as_table(dict.fromkeys(range(first, first + 3), first)))
    copies = steps(path, lambda: COMMANDS[command](DeltaTable.forPath(spark, str(path)), spark))
    seen, has_landed = [], []
    for copy in copies:
        found = contents(copy)
        if found not in seen:
            seen.append(found)
            has_landed.append(ensure_whole(copy, command, staging=["_temporary"]))
    assert has_landed == sorted(has_landed)
    assert (has_landed[0], has_landed[-1]) == (False, True)
    has_written = any("_temporary" in name for found in seen for name, _ in found)
    assert has_written == (vectors == "false" or command != "delete")
