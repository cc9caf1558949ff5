"""Intents: writers tell VACUUM about files that no version names yet."""
