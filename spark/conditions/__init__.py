"""Conditions that users give, as predicates of the engine."""
