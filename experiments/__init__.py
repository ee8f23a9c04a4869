"""The experiments of docs/experiments.md: one command per table, on two CPU cores, without Django."""
