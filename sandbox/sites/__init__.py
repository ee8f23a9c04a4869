"""Offline sites that tasks are made from: small web apps with a database behind, and linked pages."""
