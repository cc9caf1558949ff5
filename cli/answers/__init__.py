"""What a command answers, as JSON and as tables for people."""
