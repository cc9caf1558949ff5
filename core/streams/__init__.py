"""Tables read as streams: offsets, and the files of each batch (spec 11.1 to 11.3)."""
