"""Desktop tasks in OSWorld's JSON: read, checked against what can be done here, set up and judged.

The format is OSWorld's (arXiv 2404.07972): `config[]` brings a computer to its start, `evaluator{}`
names getters for the result and the expectation and a function that compares them. WindowsAgentArena
writes the same. The functions here are our own, written from what the format's users expect of them.
"""
