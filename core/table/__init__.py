"""The table's handle for users: opening, appending, resolving a commit of unknown outcome."""
