"""The drop-in's answers to Spark's analyzer and catalogs in a classic session."""
