"""Which files can hold rows that a predicate is true for: partition values and statistics."""
