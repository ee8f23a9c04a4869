"""What the command line does; each takes the parsed arguments."""
