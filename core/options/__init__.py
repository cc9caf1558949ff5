"""The options of the engine, their parsers and their values."""
