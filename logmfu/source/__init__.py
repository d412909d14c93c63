"""Where lines come from: files, globs, directories, standard input, compressed or not.

A source yields decompressed UTF-8 bytes or numbered lines, never holds a whole input, and says in
its ``Reading`` what was wrong with it.
"""

from __future__ import annotations

from logmfu.source.inputs import Source
from logmfu.source.reading import Reading
from logmfu.source.search import open_sources

__all__ = ["Reading", "Source", "open_sources"]
