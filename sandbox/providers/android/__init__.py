"""Phones by adb: any device, emulator or redroid that an adb server can reach."""

from sandbox.providers.android.provider import AndroidProvider

__all__ = ["AndroidProvider"]
