"""The change data feed: which rows a run of commits inserted, updated and deleted (spec 10.11)."""
