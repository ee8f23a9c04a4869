"""What was typed: into which field, and what of it was a secret."""
