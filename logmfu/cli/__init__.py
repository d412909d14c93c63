"""The command line: one module per command, put together in :mod:`logmfu.cli.app`."""
