"""Desktops in pods of a Kubernetes cluster, some of them kept warm.

Nothing is imported here: who only wants another provider must not need the `kubernetes` package.
"""
