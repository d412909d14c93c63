"""One module per command: arguments, one library call, print."""
