"""Options of the test run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-fixtures`` and ``--update-docs``."""
    parser.addoption(
        "--update-fixtures",
        action="store_true",
        help="write the step table of every fixture beside it as .csv; review the diff",
    )
    parser.addoption(
        "--update-docs",
        action="store_true",
        help="write the generated pages of docs/; review the diff",
    )


@pytest.fixture
def update_fixtures(request: pytest.FixtureRequest) -> bool:
    """Whether goldens are rewritten instead of compared."""
    return bool(request.config.getoption("--update-fixtures"))


@pytest.fixture
def update_docs(request: pytest.FixtureRequest) -> bool:
    """Whether generated pages are rewritten instead of compared."""
    return bool(request.config.getoption("--update-docs"))
