"""The check of a table: its log, its files and their statistics (docs/fsck.md)."""
