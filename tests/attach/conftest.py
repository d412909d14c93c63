"""Fixtures of the tests of tickets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import keyring
import keyring.backend
import pytest
from ticket_desk import PNG, Emptyring

from logmfu.tickets import Parcel


@pytest.fixture(autouse=True)
def ring() -> Iterator[Emptyring]:
    """No test reads the keyring of the machine it runs on."""
    before, mine = keyring.get_keyring(), Emptyring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def parcel(tmp_path: Path) -> Parcel:
    """A picture, a page, and a text that names its dialect."""
    picture, page = tmp_path / "train.report.png", tmp_path / "train.report.html"
    picture.write_bytes(PNG)
    page.write_bytes(b"<p>MFU</p>\r\n")
    return Parcel("Training run train", "MFU fell to 31 % ({})".format, (picture, page), key="train 1")


@pytest.fixture
def servers() -> Iterator[ExitStack]:
    """Servers that stop with the test."""
    with ExitStack() as stack:
        yield stack
