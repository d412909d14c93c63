"""The lines around what a report cites."""

from __future__ import annotations

import gzip
from dataclasses import replace
from io import BytesIO

import reports

from logmfu.excerpts import excerpts, first_line
from logmfu.report import Evidence, InputFile
from logmfu.source import open_sources


def citing(path, *lines):
    """A report whose one incident cites these lines of the file."""
    base = reports.incident()
    found = replace(base.incidents[0], evidence=tuple(Evidence(str(path), line, "kept") for line in lines))
    return replace(
        base,
        inputs=(InputFile(str(path), 1, 1),),
        attempts=(),
        stalls=(),
        changes=(),
        suspects=(),
        profiles=(),
        incidents=(found,),
    )


def numbered(path, count=20):
    """A log whose lines say their own number."""
    path.write_text("".join(f"line {n}\n" for n in range(1, count + 1)))
    return path


def test_three_lines_before_and_after(tmp_path):
    """Lines 7 to 13 around line 10."""
    log = numbered(tmp_path / "run.log")
    found = excerpts(citing(log, 10), open_sources([log]))
    assert found[str(log), 10] == tuple(f"line {n}" for n in range(7, 14))
    assert first_line(10) == 7


def test_ends_of_the_file(tmp_path):
    """There is less around the first and the last line."""
    log = numbered(tmp_path / "run.log", 5)
    found = excerpts(citing(log, 1, 5), open_sources([log]))
    assert found[str(log), 1] == ("line 1", "line 2", "line 3", "line 4")
    assert found[str(log), 5] == ("line 2", "line 3", "line 4", "line 5")
    assert first_line(1) == 1


def test_compressed_logs_are_read_too(tmp_path):
    """The same lines as from the plain file."""
    log = tmp_path / "run.log.gz"
    log.write_bytes(gzip.compress(b"a\nb\nc\n"))
    assert excerpts(citing(log, 2), open_sources([log])) == {(str(log), 2): ("a", "b", "c")}


def test_long_lines_are_cut_and_secrets_masked(tmp_path):
    """A megabyte line does not become a megabyte of report."""
    log = tmp_path / "run.log"
    log.write_text("x" * 1_000_000 + "\npassword: hunter22\n")
    first, second = excerpts(citing(log, 2), open_sources([log]))[str(log), 2]
    assert first == "x" * 400 + " … (1,000,000 characters)"
    assert second == "password: [masked]"


def test_progress_bars_on_one_line_stay_one_line(tmp_path):
    """Pieces between carriage returns share a line number."""
    log = tmp_path / "run.log"
    log.write_bytes(b"10%\r50%\r100%\nnext\n")
    (first, second) = excerpts(citing(log, 2), open_sources([log]))[str(log), 2]
    assert first.split("\r") == ["10%", "50%", "100%"]
    assert second == "next"


def test_what_cannot_be_read_again_has_no_excerpt(tmp_path):
    """A pipe, a file that went away, a line that is not there."""
    assert excerpts(citing("-", 1), open_sources(["-"], stdin=BytesIO(b"a\n"))) == {}
    log = numbered(tmp_path / "run.log", 3)
    sources = open_sources([log])
    assert excerpts(citing(log, 99), sources) == {}
    log.unlink()
    assert excerpts(citing(log, 1), sources) == {}


def test_a_private_key_that_began_earlier_is_masked(tmp_path):
    """Its first line lies outside the excerpt; its body and its end are masked all the same, and no more."""
    log = tmp_path / "run.log"
    key = [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        *["b3BlbnNzaC1rZXktdjEAAAAABG5vbmU"] * 8,
        "-----END OPENSSH PRIVATE KEY-----",
    ]
    log.write_text("\n".join([*key, "line 11", "line 12"]))
    found = excerpts(citing(log, 10), open_sources([log]))
    assert found[str(log), 10] == ("[masked]",) * 4 + ("line 11", "line 12")
