"""The parts of the drop-in that classic sessions and Spark Connect share."""
