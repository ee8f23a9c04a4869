"""The services and processes of `make run`; production points elsewhere and needs none of it."""
