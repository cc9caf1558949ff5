"""The engine's part of the commands that change rows, the same with Spark and without it."""
