"""The games: one folder each, with its page, its verifier, its manifest and its oracle."""
