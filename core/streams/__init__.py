"""Tables read as streams: offsets, and which files each batch has (spec 11.1 to 11.3)."""
