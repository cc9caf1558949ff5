"""Running work: time, budgets, retries, reading ahead."""
