"""Checkpoints: their registration, their fingerprint, their place beside the annotators."""
