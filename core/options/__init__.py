"""The options of the engine: which there are, how they are read, what their values may be."""
