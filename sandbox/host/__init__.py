"""The process that owns the computers of a machine: it makes them be what their rows say."""

from sandbox.host.process import HostProcess

__all__ = ["HostProcess"]
