"""What was said: found by its words, and silenced."""
