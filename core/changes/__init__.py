"""The change data feed: the rows that commits inserted, updated and deleted (spec 10.11)."""
