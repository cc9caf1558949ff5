"""The plug points: contracts of stores, arbiters and leases, and how the chosen one is found."""
