"""What tests look for after a write: the ids of the rows, the directories of the files."""

from pathlib import Path


def ids(frame):
    return sorted(row.id for row in frame.select("id").collect())


def data_directories(path):
    return {entry.name for entry in Path(path).iterdir() if entry.name != "_delta_log"}
