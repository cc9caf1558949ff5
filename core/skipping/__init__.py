"""The files that can hold rows of a predicate, by partition values and statistics."""
