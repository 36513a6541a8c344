# SPDX-License-Identifier: Apache-2.0
"""Options of pytest."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """--long."""
    parser.addoption("--long", action="store_true", help="more seeds, more cycles")


@pytest.fixture
def long(request: pytest.FixtureRequest) -> bool:
    """Whether the long form is asked for."""
    return request.config.getoption("--long")
