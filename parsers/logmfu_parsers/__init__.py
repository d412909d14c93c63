"""Parsers that ship with logmfu: one framework per file."""
