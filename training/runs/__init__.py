"""A run of a trainer: its row, its process, its directory, its numbers."""
