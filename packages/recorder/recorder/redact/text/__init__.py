"""What of a text is a secret or personal data."""
