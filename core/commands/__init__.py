"""The engine's part of the commands that change rows, shared by Spark and plain Python."""
