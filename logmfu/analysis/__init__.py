"""Pure functions from tables and options to findings."""
