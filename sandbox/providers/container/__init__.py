"""Desktops in containers of this host, by Docker or Podman.

Nothing is imported here: who only wants another provider must not need the `docker` package.
"""
