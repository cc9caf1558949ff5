"""Statistics of data files: from footers, as text, and their bounds."""
