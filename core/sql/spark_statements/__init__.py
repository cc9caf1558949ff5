"""Statements that Spark's parser knows, read here for Spark Connect and without Spark."""
