"""Sources: whatever the input is and however it broke, the same lines or one clear error."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pickle
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logmfu.errors import SourceError
from logmfu.source import Reading, Source, open_sources, recognition, text
from logmfu.source.compression import codec_of, decompressed

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd.compress,
    "lz4": lz4.frame.compress,
}
LOG = b"".join(b"iteration %6d/ 9000 | time (ms): %d.5 |\n" % (n, n * 7919 % 1000) for n in range(1, 9001))


def only(path: object) -> Source:
    """The one source behind a path."""
    (source,) = open_sources([path])
    return source


def put(folder: Path, content: bytes, name: str = "run.log") -> Path:
    """A file with that content."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def lines_of(folder: Path, content: bytes) -> list[tuple[int, str]]:
    """The numbered lines of a file with that content."""
    return list(only(put(folder, content)).lines())


def refused(*paths: object, **options: object) -> SourceError:
    """The error that opening and reading ends with."""
    with pytest.raises(SourceError) as caught:
        list(open_sources(paths, **options)[0].lines())
    return caught.value


# ---------------------------------------------------------------- plain files


def test_plain_file(tmp_path):
    """A plain file gives its numbered lines, its size and its counts, as often as it is asked."""
    path = put(tmp_path, b"one\ntwo\nthree\n")
    source = only(path)
    assert list(source.lines()) == [(1, "one"), (2, "two"), (3, "three")]
    assert source.path == str(path)
    assert source.size == 14
    assert source.mtime == path.stat().st_mtime
    assert source.reading == Reading(bytes=14, lines=3)
    assert b"".join(source.chunks(5)) == b"one\ntwo\nthree\n"
    assert source.reading == Reading(bytes=14, lines=3)


def test_last_line_without_line_feed(tmp_path):
    """A last line without a line feed counts, and the reading says that it has none."""
    source = only(put(tmp_path, b"one\ntw"))
    for _ in (list(source.lines()), list(source.chunks())):
        assert (source.reading.lines, source.reading.ends_with_newline) == (2, False)
        assert not source.reading.truncated


def test_carriage_returns(tmp_path):
    """CRLF is a line end; a lone CR splits a line into pieces that share its number."""
    content = b"a\r\n  5%\r 10%\r\r100%\n\n\r\n\r\r\nb\r"
    assert lines_of(tmp_path, content) == [
        (1, "a"), (2, "  5%"), (2, " 10%"), (2, "100%"), (3, ""), (4, ""), (5, ""), (6, "b"),
    ]  # fmt: skip


def test_other_separators_stay_in_the_line(tmp_path):
    """Vertical tab, form feed, NEL and the Unicode line separator do not end a line."""
    content = "loss 2.5 a\vb\fc\x85d\u2028e\x1cf, more text\n"
    assert lines_of(tmp_path, content.encode()) == [(1, content[:-1])]


def test_broken_utf8(tmp_path):
    """Broken UTF-8 is replaced and counted; a replacement character that was there is not."""
    source = only(put(tmp_path, b"ok\nbar \xe2\x96\nx \xff y\n\xef\xbf\xbd\n"))
    assert [line for _, line in source.lines()] == ["ok", "bar \ufffd", "x \ufffd y", "\ufffd"]
    assert source.reading.notes == ["2 broken UTF-8 sequences replaced"]


def test_byte_order_mark(tmp_path):
    """A UTF-8 mark is taken off, in lines, chunks and ranges."""
    source = only(put(tmp_path, b"\xef\xbb\xbfone\ntwo\n"))
    assert list(source.lines()) == [(1, "one"), (2, "two")]
    assert b"".join(source.chunks(2)) == b"one\ntwo\n"
    assert [b"".join(source.range(*part)) for part in ((0, 3), (3, 11))] == [b"one\n", b"two\n"]


@pytest.mark.parametrize("mark", [True, False])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16(tmp_path, encoding, mark):
    """UTF-16 is recognised with and without a mark, and comes out as UTF-8."""
    content = (
        "\ufeff" * mark + "step 1 loss 2.5 \u2588\r\nstep 2 \U0001f600\r\n" + "plain text\n" * 9
    ).encode(encoding)
    source = only(put(tmp_path, content))
    assert list(source.lines())[:2] == [(1, "step 1 loss 2.5 \u2588"), (2, "step 2 \U0001f600")]
    assert source.reading.encoding == encoding
    assert b"".join(source.chunks(3)).decode().startswith("step 1 loss 2.5 \u2588\r\nstep 2 \U0001f600\r\n")
    assert not source.splittable


def test_utf32(tmp_path):
    """A UTF-32 mark is not taken for the UTF-16 one it begins with."""
    assert lines_of(tmp_path, "\ufeffstep 1\n".encode("utf-32-le")) == [(1, "step 1")]


def test_utf16_cut_inside_a_character(tmp_path):
    """Half a UTF-16 character at the end is replaced and noted."""
    source = only(put(tmp_path, "\ufeffab\ncd".encode("utf-16-le")[:-1]))
    assert list(source.lines()) == [(1, "ab"), (2, "c\ufffd")]
    assert source.reading.notes == ["1 broken utf-16-le sequences replaced"]


def test_utf16_appended_to_another_encoding(tmp_path):
    """Lines that PowerShell appended in UTF-16 to an ASCII file are readable."""
    content = b"first\n" + "second 12.5\r\n".encode("utf-16-le")
    assert lines_of(tmp_path, content) == [(1, "first"), (2, "second 12.5")]


HOLE = bytes(4 << 20)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"time 12" + HOLE + b"34 s\nb\n", [(1, "time 12"), (1, "34 s"), (2, "b")]),
        (HOLE + b"a\nb\n", [(1, "a"), (2, "b")]),
        (b"a\nb\n" + HOLE, [(1, "a"), (2, "b")]),
        (b"a\n" + HOLE + b"\nb\n", [(1, "a"), (2, ""), (3, "b")]),
    ],
)
def test_hole_of_nuls(tmp_path, content, expected):
    """A hole a crashed node left is survived anywhere, counted, and never glues two numbers together."""
    source = only(put(tmp_path, content))
    assert list(source.lines()) == expected
    assert source.reading.lines == expected[-1][0]
    assert source.reading.notes == [f"{4 << 20} NUL bytes dropped"]
    text = b"".join(source.chunks())
    assert b"\0" not in text
    assert source.reading.lines == expected[-1][0]


def test_single_nuls_are_dropped(tmp_path):
    """A few NUL bytes inside a word are dropped."""
    assert lines_of(tmp_path, b"lo\0ss 2.5\n" + b"x" * 99) == [(1, "loss 2.5"), (2, "x" * 99)]


def test_line_of_10_mb(tmp_path):
    """A line of 10 MB is one line."""
    assert lines_of(tmp_path, b"a\n" + b"x" * 10_000_000 + b"\nb\n") == [
        (1, "a"),
        (2, "x" * 10_000_000),
        (3, "b"),
    ]


def test_line_that_is_too_long(monkeypatch):
    """A line over the limit is cut between characters, noted, and keeps its number."""
    monkeypatch.setattr(text, "MAX_LINE", 8)
    content = "short\nabcdefg\u2588hijk\nend\n".encode()
    for size in range(1, 8):
        reading = Reading()
        blocks = [content[start : start + size] for start in range(0, len(content), size)]
        lines = list(text.numbered(blocks, reading))
        assert lines == [(1, "short"), (2, "abcdefg"), (2, "\u2588hijk"), (3, "end")]
        assert reading.lines == 3
        assert reading.notes == ["1 cuts in lines longer than 0 MiB"]


def test_long_line_of_progress_bars(tmp_path, monkeypatch):
    """A file with carriage returns only is cut at one of them, without loss and without a note."""
    monkeypatch.setattr(text, "MAX_LINE", 16)
    source = only(put(tmp_path, b"".join(b" %d%%|##\r" % n for n in range(100)) + b"\nend"))
    assert list(source.lines()) == [(1, f" {n}%|##") for n in range(100)] + [(2, "end")]
    assert source.reading.notes == []


def test_file_that_grows(tmp_path):
    """What is appended after opening is not read."""
    source = only(put(tmp_path, b"one\n"))
    with (tmp_path / "run.log").open("ab") as file:
        file.write(b"two\n")
    assert list(source.lines()) == [(1, "one")]


def test_file_that_shrinks(tmp_path):
    """A file that got shorter is read as far as it goes, and the reading says so."""
    source = only(put(tmp_path, b"one\ntwo\n"))
    os.truncate(tmp_path / "run.log", 4)
    assert list(source.lines()) == [(1, "one")]
    assert source.reading.truncated == "the file ends at byte 4 instead of 8"


def test_file_that_is_replaced(tmp_path):
    """Another file in the same place is noted."""
    source = only(put(tmp_path, b"one\n"))
    put(tmp_path, b"new\n", "other").replace(tmp_path / "run.log")
    assert list(source.lines()) == [(1, "new")]
    assert source.reading.notes == ["the file was replaced by another one after it was opened"]


def test_progress_adds_up_to_the_size(tmp_path):
    """The counts given to the progress callback add up to the size of the file, compressed too."""
    for source in open_sources([put(tmp_path, LOG), put(tmp_path, gzip.compress(LOG), "b.gz")]):
        seen: list[int] = []
        source.progress = seen.append
        list(source.chunks())
        assert sum(seen) == source.size == source.reading.bytes


# ---------------------------------------------------------------- compression


@pytest.mark.parametrize("kind", COMPRESS)
def test_compression_is_told_by_content(tmp_path, kind):
    """A compressed file is recognised whatever it is called, and its compressed bytes are counted."""
    packed = COMPRESS[kind](LOG)
    source = only(put(tmp_path, packed, "run.log"))
    assert b"".join(source.chunks()) == LOG
    assert source.reading == Reading(bytes=len(packed), lines=9000)
    assert list(source.lines()) == list(enumerate(LOG.decode().splitlines(), 1))
    assert not source.splittable


def test_plain_text_called_gz(tmp_path):
    """A name that promises gzip does not make it one."""
    assert list(only(put(tmp_path, b"a\n", "run.log.gz")).lines()) == [(1, "a")]


@pytest.mark.parametrize("kind", COMPRESS)
def test_concatenated_streams(tmp_path, kind):
    """All streams that follow each other are read, padding between them included."""
    padding = bytes(4) if kind in ("gz", "xz") else b""
    packed = COMPRESS[kind](b"one\n") + padding + COMPRESS[kind](b"two\n") + COMPRESS[kind](b"three\n")
    source = only(put(tmp_path, packed))
    assert [line for _, line in source.lines()] == ["one", "two", "three"]
    assert (source.reading.truncated, source.reading.notes) == ("", [])


@pytest.mark.parametrize("kind", COMPRESS)
def test_cut_off_stream(tmp_path, kind):
    """A stream that was cut off is read up to the cut, and the reading says where."""
    noise = "".join(chr(33 + n * n * 7919 % 90) for n in range(4_000_000))
    packed = COMPRESS[kind](b"first line\n" + noise.encode())
    cut = len(packed) * 3 // 4
    source = only(put(tmp_path, packed[:cut]))
    content = b"".join(source.chunks())
    assert (b"first line\n" + noise.encode()).startswith(content)
    assert len(content) > 1_000_000
    assert source.reading.truncated.endswith(f"stream ends early, at byte {cut}")


@pytest.mark.parametrize("kind", COMPRESS)
def test_stream_cut_in_its_last_byte(tmp_path, kind):
    """Even one missing byte is noticed; it costs nothing but, with zstd, the block it was in."""
    source = only(put(tmp_path, COMPRESS[kind](LOG)[:-1]))
    content = b"".join(source.chunks())
    assert LOG.startswith(content)
    assert len(content) >= len(LOG) - (128 << 10) * (kind == "zst")
    assert "ends early" in source.reading.truncated


@pytest.mark.parametrize("kind", ["gz", "zst"])
def test_cut_in_the_second_stream(tmp_path, kind):
    """A cut in a later stream keeps the earlier ones."""
    source = only(put(tmp_path, COMPRESS[kind](b"one\n") + COMPRESS[kind](b"two\n")[:-9]))
    assert next(iter(source.lines())) == (1, "one")
    list(source.lines())
    assert "ends early" in source.reading.truncated


@pytest.mark.parametrize("kind", COMPRESS)
def test_damaged_stream(tmp_path, kind):
    """Damage in the middle ends the reading there and is said; what came before is kept."""
    noise = b"".join(b"%d\n" % (n * n * 7919 % 1_000_003) for n in range(400_000))
    packed = bytearray(COMPRESS[kind](noise))
    middle = len(packed) // 2
    packed[middle : middle + 64] = bytes(64)
    source = only(put(tmp_path, bytes(packed)))
    content = b"".join(source.chunks())
    assert noise[: len(noise) // 8] == content[: len(noise) // 8]
    assert "damaged near byte" in source.reading.truncated


def test_text_behind_a_compressed_stream(tmp_path):
    """What follows a compressed stream and is none is noted, not an error."""
    source = only(put(tmp_path, gzip.compress(b"one\n") + b"trailing words\n"))
    assert list(source.lines()) == [(1, "one")]
    assert source.reading.notes == ["what follows the gzip data, from about byte 39, was not read"]
    assert not source.reading.truncated


def test_nothing_before_the_cut(tmp_path):
    """A stream cut before its first character is an error with the place of the cut."""
    error = refused(put(tmp_path, gzip.compress(LOG)[:8]))
    assert error.what.startswith("nothing can be read from ")
    assert error.facts == ("the gzip stream ends early, at byte 8",)


def test_skippable_frame_first(tmp_path):
    """A zstd file may begin with a frame that holds no data (pzstd writes one)."""
    packed = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"size" + zstd.compress(b"one\n")
    assert lines_of(tmp_path, packed) == [(1, "one")]


def test_compressed_twice(tmp_path):
    """A compressed file inside another is unpacked."""
    assert lines_of(tmp_path, zstd.compress(gzip.compress(b"one\n"))) == [(1, "one")]


def test_bomb_stays_small():
    """A stream that expands 5000-fold comes in blocks of bounded size."""
    packed = lzma.compress(bytes(100 << 20))
    codec = codec_of(packed)
    assert codec
    assert max(map(len, decompressed([packed], codec, Reading()))) <= 1 << 20


# ---------------------------------------------------------------- zip


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, *, stream: bool = False) -> bytes:
    """A zip archive, as bytes."""
    held = io.BytesIO()
    # a target that cannot seek makes zipfile write the sizes behind the data
    target = _Unseekable(held) if stream else held
    with zipfile.ZipFile(target, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return held.getvalue()


class _Unseekable(io.RawIOBase):
    def __init__(self, target: io.BytesIO) -> None:
        self.target = target

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        return self.target.write(data)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_zip_members_are_sources(tmp_path, method):
    """Every log in a zip archive is a source; folders, hidden files and pictures are not."""
    packed = zipped(
        {
            "logs/rank10.log": b"ten\n",
            "logs/rank2.log": b"two\n",
            "__MACOSX/rank2.log": b"x",
            "a.png": b"x",
            "e.log": b"",
        },
        method,
    )
    sources = open_sources([put(tmp_path, packed, "logs.zip")])
    zip_name = str(tmp_path / "logs.zip")
    assert [source.path for source in sources] == [
        f"{zip_name}!logs/rank2.log",
        f"{zip_name}!logs/rank10.log",
    ]
    assert [list(source.lines()) for source in sources] == [[(1, "two")], [(1, "ten")]]
    assert sources[0].reading.notes == [
        f"no logs in {zip_name}: __MACOSX/rank2.log, a.png, {zip_name}!e.log is empty"
    ]


@pytest.mark.parametrize("stream", [False, True])
def test_zip_cut_off(tmp_path, stream):
    """A zip archive that lost its end is read by the headers of its members, up to the cut."""
    packed = zipped({"a.log": b"one\n", "b.log": LOG}, stream=stream)
    sources = open_sources([put(tmp_path, packed[: len(packed) // 2])])
    assert [source.path.split("!")[1] for source in sources] == ["a.log", "b.log"]
    assert list(sources[0].lines()) == [(1, "one")]
    assert "no directory at its end" in sources[0].reading.notes[0]
    content = b"".join(sources[1].chunks())
    assert LOG.startswith(content)
    assert len(content) > 10_000
    assert "ends" in sources[1].reading.truncated


def test_zip_damaged_member(tmp_path):
    """A member that does not match its checksum is read and noted."""
    packed = zipped({"a.log": b"iteration 1\n"}, zipfile.ZIP_STORED).replace(
        b"iteration 1", b"iteration 7", 1
    )
    source = only(put(tmp_path, packed))
    assert list(source.lines()) == [(1, "iteration 7")]
    assert source.reading.notes == ["the checksum does not match: some of this text is damaged"]


def test_compressed_log_in_a_zip(tmp_path):
    """A compressed log inside an archive is unpacked too."""
    source = only(put(tmp_path, zipped({"a.log.gz": gzip.compress(b"one\n")})))
    assert list(source.lines()) == [(1, "one")]
    assert source.reading.notes == []


def test_zip_encrypted(tmp_path):
    """An encrypted archive is an error that says what to do."""
    packed = bytearray(zipped({"a.log": b"one\n"}))
    packed[6] |= 1  # the flag in the header of the member and in the directory
    packed[packed.index(b"PK\x01\x02") + 8] |= 1
    error = refused(put(tmp_path, bytes(packed)))
    assert error.what.endswith("!a.log is encrypted")
    assert "password" in error.hint


def test_zip_with_a_method_that_is_not_read(tmp_path):
    """A member compressed in a way we do not read is an error that names the way."""
    error = refused(put(tmp_path, zipped({"a.log": b"one\n"}, zipfile.ZIP_LZMA)))
    assert error.what.endswith("!a.log is compressed with zip method 14")


def test_zip_with_a_wrong_directory(tmp_path):
    """A directory that points to nowhere is an error, not a crash."""
    packed = bytearray(zipped({"a.log": b"one\n"}))
    packed[0:4] = b"PK\x05\x06"
    assert "is damaged" in refused(put(tmp_path, bytes(packed))).what


def test_zip_without_a_log(tmp_path):
    """An archive with nothing readable is an error that lists what is in it."""
    error = refused(put(tmp_path, zipped({"a.png": b"x", "b.dat": os.urandom(5000)}), "x.zip"))
    assert error.what == f"no log in the archive {tmp_path / 'x.zip'}"
    assert "a.png" in error.facts[0]


def test_zip_on_standard_input(tmp_path, monkeypatch):
    """A zip archive through a pipe is put into a temporary file, which goes away with the sources."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sources = open_sources(["-"], stdin=io.BytesIO(zipped({"a.log": b"one\n"})))
    assert len(list(tmp_path.iterdir())) == 1
    assert [list(source.lines()) for source in sources] == [[(1, "one")]]
    assert sources[0].path == "-!a.log"
    sources.clear()
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- pipes


def test_standard_input():
    """Standard input is read once, and the head that was looked at is not lost."""
    source = open_sources(["-"], stdin=io.BytesIO(LOG))[0]
    assert (source.path, source.size, source.mtime, source.splittable) == ("-", None, None, False)
    assert source.head(64) == [(1, "iteration      1/ 9000 | time (ms): 919.5 |")]
    assert source.head(100_000)[-1][0] > 2000
    assert list(source.lines()) == list(enumerate(LOG.decode().splitlines(), 1))
    assert source.reading == Reading(bytes=len(LOG), lines=9000)
    with pytest.raises(SourceError, match="only once"):
        list(source.lines())


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_standard_input(kind):
    """Standard input may be compressed."""
    source = open_sources(["-"], stdin=io.BytesIO(COMPRESS[kind](LOG)))[0]
    assert source.head(30_000)[0] == (1, "iteration      1/ 9000 | time (ms): 919.5 |")
    assert b"".join(source.chunks()) == LOG


def test_standard_input_named_twice():
    """Standard input named twice is one source."""
    assert len(open_sources(["-", "-"], stdin=io.BytesIO(b"a\n"))) == 1


def test_standard_input_from_a_file(tmp_path):
    """A redirected file keeps its size and its time."""
    path = put(tmp_path, b"one\n")
    with path.open("rb") as file:
        source = open_sources(["-"], stdin=file)[0]
        assert (source.size, source.mtime) == (4, path.stat().st_mtime)


def test_named_pipe(tmp_path):
    """A named pipe (process substitution) is read as standard input is."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(LOG,))
    writer.start()
    source = only(path)
    assert source.size is None
    assert b"".join(source.chunks()) == LOG
    writer.join()


class FailingStream(io.BytesIO):
    """A stream that breaks after its content, as a network file system does."""

    def read1(self, size: int | None = -1, /) -> bytes:
        """The content, then an error."""
        block = super().read1(size)
        if not block:
            raise OSError(5, "Input/output error")
        return block


def test_read_error():
    """A read error ends the reading where it happens and is said; at the first byte it is an error."""
    source = open_sources(["-"], stdin=FailingStream(b"one\ntwo\n"))[0]
    assert list(source.lines()) == [(1, "one"), (2, "two")]
    assert source.reading.truncated == "reading failed at byte 8: Input/output error"
    error = refused("-", stdin=FailingStream(b""))
    assert (error.what, error.facts) == ("cannot read -", ("Input/output error",))


def test_endless_nuls(monkeypatch):
    """A pipe that brings nothing but NUL bytes is given up, not waited for."""
    monkeypatch.setattr(recognition, "_PATIENCE", 1000)
    stream = io.BytesIO(bytes(1 << 20))
    assert refused("-", stdin=stream).what == "there is no text in -"
    assert stream.tell() < 1 << 18


def test_head_of_a_file(tmp_path):
    """The head is the lines that end within so many bytes; the reading of the last pass stays."""
    source = only(put(tmp_path, b"one\ntwo\nthree"))
    list(source.lines())
    assert source.head(9) == [(1, "one"), (2, "two")]
    assert source.head(2) == [(1, "on")]
    assert source.head() == [(1, "one"), (2, "two"), (3, "three")]
    assert source.reading.lines == 3


# ---------------------------------------------------------------- names, globs, directories


def names(sources: list[Source]) -> list[str]:
    """File names of sources."""
    return [Path(source.path).name for source in sources]


def test_several_files_keep_their_order(tmp_path):
    """Files come in the order they were named, each once, whatever the name."""
    b, a = put(tmp_path, b"b\n", "b.log"), put(tmp_path, b"a\n", "a.log")
    (tmp_path / "latest").symlink_to(b)
    sources = open_sources([b, a, str(b), tmp_path / "latest"])
    assert names(sources) == ["b.log", "a.log"]
    assert (
        sources[0].reading.notes[-1] == f"{tmp_path / 'latest'} is the same file as {b}, which is read once"
    )


def test_home_directory(tmp_path, monkeypatch):
    """A tilde the shell did not expand is expanded."""
    monkeypatch.setenv("HOME", str(tmp_path))
    put(tmp_path, b"a\n")
    assert names(open_sources(["~/run.log"])) == names(open_sources(["~/*.log"])) == ["run.log"]


def test_directory(tmp_path):
    """A directory is its logs in natural order; what is left out is listed."""
    for name in (
        "rank10.log",
        "rank2.log",
        "rank1.out",
        ".hidden.log",
        "train.py",
        "loss.png",
        "run.report.json",
    ):
        put(tmp_path, b"a\n", name)
    put(tmp_path, b"", "empty.err")
    put(tmp_path, bytes(range(256)) * 20, "optimizer")
    put(tmp_path, b"a\n", "old/run.log")
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    sources = open_sources([tmp_path])
    assert names(sources) == ["rank1.out", "rank2.log", "rank10.log"]
    assert sources[0].reading.notes == [
        "no logs by their names: loss.png, run.report.json, train.py",
        "directories not searched: old",
        f"left out: {tmp_path}/empty.err is empty, {tmp_path}/optimizer is not text",
        "no files (pipes, devices, links to nothing): gone.log",
    ]
    list(sources[0].lines())
    assert len(sources[0].reading.notes) == 4


PIECES = ["run.log.2.gz", "run.log.1", "run.log"]
DATED = ["out-20260302.log", "run.log-20260101", "run.log-20260102.gz", "run.log"]


@pytest.mark.parametrize("oldest_first", [PIECES, DATED])
def test_a_rotated_log_is_read_from_its_oldest_piece_on(tmp_path, oldest_first):
    """In a directory, a glob, and as a shell expands ``run.log*``; what is no piece of it stays where it is."""
    for name in oldest_first:
        put(tmp_path, gzip.compress(b"a\n") if name.endswith(".gz") else b"a\n", name)
    assert names(open_sources([tmp_path])) == oldest_first
    assert names(open_sources([f"{tmp_path}/*"])) == oldest_first
    assert names(open_sources(sorted(tmp_path.iterdir()))) == oldest_first


def test_numbers_without_a_log_before_them_are_no_pieces(tmp_path):
    """Files of ranks are in the order of their numbers."""
    for name in ("log.0", "log.1", "log.10"):
        put(tmp_path, b"a\n", name)
    assert names(open_sources([tmp_path])) == ["log.0", "log.1", "log.10"]


def test_directory_without_a_log(tmp_path):
    """A directory without a log is an error that says what was there."""
    put(tmp_path, b"x", "train.py")
    put(tmp_path, b"x", "sub/run.log")
    error = refused(tmp_path)
    assert error.what == f"no log in the directory {tmp_path}"
    assert error.facts == ("directories not searched: sub", "no logs by their names: train.py")
    assert "**" in error.hint


def test_glob(tmp_path):
    """A glob gives the files that match, in natural order, across directories with ``**``."""
    for name in ("rank10.log", "rank2.log", "x.txt", "sub/rank3.log"):
        put(tmp_path, b"a\n", name)
    assert names(open_sources([f"{tmp_path}/rank*.log"])) == ["rank2.log", "rank10.log"]
    assert names(open_sources([f"{tmp_path}/**/*.log"])) == ["rank2.log", "rank10.log", "rank3.log"]
    assert refused(f"{tmp_path}/*.err").what == f"no file matches {tmp_path}/*.err"
    assert refused(f"{tmp_path}/s*").facts == ("only directories do",)


def test_file_whose_name_looks_like_a_glob(tmp_path):
    """A file that exists is itself, even with brackets in its name."""
    put(tmp_path, b"wrong\n", "run1.log")
    assert list(only(put(tmp_path, b"right\n", "run[1].log")).lines()) == [(1, "right")]


def test_empty_file_among_others(tmp_path):
    """An empty file is left out with a note when there are others."""
    empty, full = put(tmp_path, b"", "empty.log"), put(tmp_path, b"a\n", "full.log")
    sources = open_sources([empty, full])
    assert names(sources) == ["full.log"]
    assert sources[0].reading.notes == [f"{empty} is empty: left out"]


def test_name_that_cannot_be_printed(tmp_path):
    """Control characters and broken UTF-8 in a file name are shown as replacement characters."""
    path = os.fsencode(tmp_path) + b"/a\x1b[31m\xff.log"
    Path(os.fsdecode(path)).write_bytes(b"a\n")
    (source,) = open_sources([tmp_path])
    assert source.path == f"{tmp_path}/a\ufffd[31m\ufffd.log"
    assert list(source.lines()) == [(1, "a")]


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf", "there is no text in"),
        (bytes(9999), "there is no text in"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + bytes(range(64)) * 9, "is not text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 4, "is not text"),
        (b"".join(n.to_bytes(2, "little") for n in range(1, 9000, 7)), "is not text"),
        (b"7z\xbc\xaf\x27\x1c" + b"x" * 99, "is a 7z archive, which is not read"),
        (zstd.compress(zipped({"a": b"b"})), "is a zip archive inside another compressed file"),
    ],
    ids=["nothing", "mark", "zeros", "gzip", "elf", "png", "numbers", "7z", "zip-in-zstd"],
)
def test_input_that_is_no_log(tmp_path, content, what):
    """Empty, binary and foreign inputs are one clear error with the name of the file."""
    error = refused(put(tmp_path, content))
    assert what in error.what
    assert str(tmp_path / "run.log") in error.what
    assert error.hint


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_tar(tmp_path, mode):
    """A tar archive, compressed or not, is an error that says to unpack it."""
    path = put(tmp_path, b"a\n")
    with tarfile.open(tmp_path / "logs", mode) as archive:
        archive.add(path)
    error = refused(tmp_path / "logs")
    assert "is a tar archive" in error.what
    assert "unpack" in error.hint


def test_random_bytes(tmp_path):
    """Random bytes are no text."""
    assert (
        "is not text" in refused(put(tmp_path, bytes(n * n * 7919 // 97 % 256 for n in range(5000)))).what
    )


def test_colours_and_national_encodings_are_text(tmp_path):
    """Terminal colours, progress bars with backspaces and a national encoding are text."""
    content = b"\x1b[31mloss 2.5\x1b[0m \b\b\a\x0c\n" * 50 + "\u635f\u5931: 2.5\n".encode("gbk") * 50
    assert lines_of(tmp_path, content)[-1][1].endswith(": 2.5")


def test_address():
    """An address is refused with the advice to download it."""
    error = refused("https://example.org/run.log")
    assert "download" in error.hint


def test_missing_file(tmp_path):
    """A file that is not there is an error that names the ones that are nearly called so."""
    put(tmp_path, b"a\n", "train-1.log")
    error = refused(tmp_path / "trian-1.log")
    assert error.what == f"there is no file {tmp_path}/trian-1.log"
    assert error.hint == f"{tmp_path}/train-1.log"
    assert refused(tmp_path / "no" / "run.log").facts == (f"there is no directory {tmp_path}/no",)


def test_file_that_vanished(tmp_path):
    """A file that goes away between opening and reading is an error that says so."""
    path = put(tmp_path, b"a\n")
    source = only(path)
    path.unlink()
    with pytest.raises(SourceError, match="is gone"):
        list(source.lines())


def test_odd_names(tmp_path):
    """A dangling link, a device, an empty name and a name with a NUL are errors, not crashes."""
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    assert refused(tmp_path / "link").facts == ("to nowhere",)
    assert refused(tmp_path / "loop").what.startswith("cannot open")
    assert refused("/dev/zero").what == "/dev/zero is not a file"
    assert refused("").what == "an input has an empty name"
    assert refused("a\0b").what == "a\ufffdb cannot be the name of a file"
    assert refused(tmp_path / ("x" * 300)).what.startswith("cannot open")
    assert refused(put(tmp_path, b"a\n") / "below").what.startswith("there is no file")
    assert refused().what == "no input"


FORBIDDEN = """
import os, sys
from logmfu.errors import SourceError
from logmfu.source import open_sources
if os.geteuid() == 0:
    os.setegid(65534); os.seteuid(65534)
for path in sys.argv[1:]:
    try:
        open_sources([path])
        print("read")
    except SourceError as error:
        print(error.what, "|", *error.facts)
"""


def test_no_permission():
    """A file or a directory that may not be read is an error with its mode and owner."""
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        folder = Path(name)
        folder.chmod(0o755)
        secret = put(folder, b"a\n", "logs/secret.log")
        closed = put(folder, b"a\n", "closed/run.log").parent
        listed = put(folder, b"a\n", "listed/run.log").parent
        secret.chmod(0)
        closed.chmod(0)
        listed.chmod(0o444)
        paths = [secret, secret.parent, closed, closed / "run.log", listed, f"{listed}/*.log"]
        done = subprocess.run(
            [sys.executable, "-c", FORBIDDEN, *map(str, paths)], capture_output=True, text=True, check=True
        )
        closed.chmod(0o755)
        listed.chmod(0o755)
    answers = [line.split(" | ") for line in done.stdout.splitlines()]
    assert [what.removeprefix("no permission to read ") for what, *_ in answers] == [
        f"{secret}", f"{secret}", f"{closed}", f"{closed}/run.log", f"{listed}/run.log", f"{listed}/*.log",
    ]  # fmt: skip
    assert answers[0][1].startswith("mode 000, owner uid ")
    assert answers[3][1] == "a directory above it may not be entered"


def test_compressed_source_cannot_be_split(tmp_path):
    """Asking for a range of a compressed file is an error."""
    with pytest.raises(SourceError, match="cannot be read in parts"):
        list(only(put(tmp_path, gzip.compress(b"a\n"))).range(0, 1))


# ---------------------------------------------------------------- laws

PIECES = st.sampled_from(
    [
        b"loss 2.5",
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        bytes(3),
        bytes(30),
        b"\xe2\x96\x88",
        b"\xff",
        b"x" * 40,
        b" 10%",
    ]
)
# the odd pieces stand behind enough text (2280 bytes) that their NUL bytes do not make it binary
CONTENTS = st.lists(PIECES, max_size=25).map(
    lambda pieces: b"start of the log, more text than the few odd bytes in it\n" * 40 + b"".join(pieces)
)


def by_the_book(content: bytes) -> list[tuple[int, str]]:
    """The lines as the definition has them, from the whole content at once."""
    *lines, last = content.split(b"\n")
    found = []
    for number, line in enumerate([*lines, *([last] if last.rstrip(b"\0") else [])], 1):
        joined = b"\r".join(part for part in _split_at_holes(line))
        pieces = [piece for piece in joined.decode(errors="replace").split("\r") if piece]
        found += [(number, piece) for piece in pieces or [""]]
    return found


def _split_at_holes(line: bytes) -> list[bytes]:
    parts = line.split(bytes(8))
    return [part.replace(b"\0", b"") for part in parts]


@given(content=CONTENTS, size=st.integers(1, 50))
@settings(deadline=None)
def test_lines_are_what_the_definition_says(content, size):
    """Lines do not depend on how the bytes were cut into chunks, and follow the definition."""
    with tempfile.TemporaryDirectory() as folder:
        source = only(put(Path(folder), content))
        expected = by_the_book(content)
        assert list(source.lines()) == expected
        lines = source.reading.lines
        clean = b"".join(source.chunks(size))
        assert clean == b"".join(source.chunks())
        assert source.reading.lines == lines == expected[-1][0]
        blocks = [clean[start : start + size] for start in range(0, len(clean), size)]
        assert list(text.numbered(blocks, Reading())) == expected


@given(
    content=CONTENTS,
    kind=st.sampled_from([*COMPRESS, "zip", "pipe"]),
    cuts=st.lists(st.integers(2200, 2700), max_size=3),
)
@settings(deadline=None)
def test_any_packing_gives_the_same_lines(content, kind, cuts):
    """Compression, in one stream or several, archives and pipes change nothing."""
    with tempfile.TemporaryDirectory() as folder:
        expected = list(only(put(Path(folder), content, "plain")).lines())
        if kind == "pipe":
            (source,) = open_sources(["-"], stdin=io.BytesIO(content))
        elif kind == "zip":
            source = only(put(Path(folder), zipped({"a.log": content}), "packed"))
        else:
            borders = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
            streams = (content[a:b] for a, b in pairwise(borders))
            source = only(put(Path(folder), b"".join(map(COMPRESS[kind], streams)), "packed"))
        assert list(source.lines()) == expected
        assert not source.reading.truncated


@given(
    content=CONTENTS,
    mark=st.booleans(),
    cuts=st.lists(st.integers(2200, 2700), max_size=5),
    size=st.integers(1, 99),
)
@settings(deadline=None)
def test_any_split_gives_the_same_text(content, mark, cuts, size):
    """Ranges that cover the file give every line once, wherever they are cut."""
    with tempfile.TemporaryDirectory() as folder:
        source = only(put(Path(folder), b"\xef\xbb\xbf" * mark + content))
        whole = b"".join(source.chunks())
        lines = source.reading.lines
        borders = [0, *sorted(cuts), 10_000]
        parts, counts = [], []
        for start, end in pairwise(borders):
            copy = pickle.loads(pickle.dumps(source))  # noqa: S301 - as another process would get it
            parts.append(b"".join(copy.range(start, end, size)))
            counts.append(copy.reading.lines)
        assert b"".join(parts) == whole
        assert sum(counts) == lines
        assert all(
            part.endswith(b"\n") for part in parts[:-1] if part and b"".join(parts[parts.index(part) + 1 :])
        )


@given(content=CONTENTS, kind=st.sampled_from([*COMPRESS, "zip"]), share=st.floats(0, 1))
@settings(deadline=None)
def test_any_cut_gives_a_beginning_or_one_error(content, kind, share):
    """A packed log cut anywhere gives a beginning of its text and says so, or one clear error."""
    packed = zipped({"a.log": content}) if kind == "zip" else COMPRESS[kind](content)
    packed = packed[: max(4, int(len(packed) * share))]  # fewer show nothing
    with tempfile.TemporaryDirectory() as folder:
        whole = b"".join(only(put(Path(folder), content, "plain")).chunks())
        try:
            source = only(put(Path(folder), packed, "packed"))
        except SourceError:
            return
        read = b"".join(source.chunks())
        notes = source.reading.truncated or any("no directory" in note for note in source.reading.notes)
        assert whole.startswith(read)
        assert notes or read == whole


@given(
    content=st.binary(max_size=300),
    magic=st.sampled_from([b"", *(pack(b"a\n") for pack in COMPRESS.values()), b"PK\x03\x04"]),
)
@settings(deadline=None)
def test_any_bytes_are_read_or_refused(content, magic):
    """Whatever the bytes, there are lines or a ``SourceError``, nothing else."""
    with tempfile.TemporaryDirectory() as folder, suppress(SourceError):
        for source in open_sources([put(Path(folder), magic + content)]):
            list(source.lines())
            list(source.chunks())
