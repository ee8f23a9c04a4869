"""Making the model in the box, and measuring it."""
