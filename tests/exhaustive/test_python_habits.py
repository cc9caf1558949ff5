"""Every expression of `python_habits`: the rows that Python would choose, or an error."""

from __future__ import annotations

from python_habits import chosen_by_builder, chosen_by_python, expressions


def test_no_expression_chooses_other_rows_than_python_would():
    wrong = []
    for text in expressions():
        chosen, python = chosen_by_builder(text), chosen_by_python(text)
        if chosen is not None and python is not None and chosen != python:
            wrong.append((text, chosen, python))
    assert wrong == []
