"""MERGE of Arrow rows into a table, in this process."""
