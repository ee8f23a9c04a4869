"""The version of this program, written into every recording."""

VERSION = "0.1.0"
