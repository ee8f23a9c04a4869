"""What is learnt from: frozen datasets, and the rows that trainers read."""
