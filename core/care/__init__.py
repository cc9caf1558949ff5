"""Commands that care for a table as it is kept: RESTORE and VACUUM."""
