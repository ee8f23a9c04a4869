"""What contributors are asked to record: scored applications, their functions, queries, and whose turn is which."""
