"""What is seen: read from pictures, painted over on them, and for how long it stays."""
