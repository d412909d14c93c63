"""Read the logs of large training runs: how well the accelerators were used, and where the time went."""

__version__ = "0.1.0"
