"""Statements that Spark's parser knows, read here for paths on Spark Connect."""
