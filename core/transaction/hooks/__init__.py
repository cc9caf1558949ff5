"""What runs after a commit: checkpoints, checksums, cleanup, manifests."""
