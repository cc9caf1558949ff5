"""Two commits at once: what each of them read and wrote, the rules, and the rebase."""
