"""Options of the test run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-fixtures``."""
    parser.addoption(
        "--update-fixtures",
        action="store_true",
        help="write the step table of every fixture beside it as .csv; review the diff",
    )


@pytest.fixture
def update_fixtures(request: pytest.FixtureRequest) -> bool:
    """Whether goldens are rewritten instead of compared."""
    return bool(request.config.getoption("--update-fixtures"))
