"""Schemas: their types, their Arrow counterparts, type widening, generated columns."""
