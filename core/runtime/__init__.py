"""Runtime services: time, budgets, retries and reading ahead."""
