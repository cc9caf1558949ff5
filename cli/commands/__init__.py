"""The commands of the command line, each a function whose arguments are its options."""
