"""Virtual machines forked from one that booted once; see `provider`. Imports nothing: its bridge starts fast."""
