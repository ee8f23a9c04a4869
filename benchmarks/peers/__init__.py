"""Drivers of the browser benchmark: each runs one kind of environment in a process of its own."""
