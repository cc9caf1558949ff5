"""The plug points: contracts of stores, arbiters and leases, and the search for the chosen one."""
