"""One module per output; a renderer formats and never computes."""
