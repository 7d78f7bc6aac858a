"""Tasks: items, splits, scorers, and the runner that tries a chat model on them."""
