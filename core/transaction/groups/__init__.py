"""Group commit: appends of several threads as one version (docs/commit.md, spec 1.17)."""
