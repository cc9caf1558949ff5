"""What a command has to work out itself, over what the engine tells."""
