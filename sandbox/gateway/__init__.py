"""A host's one port: callers on other machines reach its computers through it, and nothing else."""
