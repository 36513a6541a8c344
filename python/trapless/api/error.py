# SPDX-License-Identifier: Apache-2.0
"""The only exception of `import trapless`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from trapless.base.ui import UserError

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Error(Exception):
    """Raised for errors that you can fix: a file that does not exist, an unknown name, a program that does not compile. Its text
    is one line that says what is wrong.
    """

    __module__ = "trapless"


def one_line(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Turn the function's UserError into `Error`, without the library's part of the traceback."""
    @wraps(function)
    def call(*arguments: _P.args, **options: _P.kwargs) -> _T:
        try:
            return function(*arguments, **options)
        except UserError as error:
            raise Error(str(error)) from None
    return call
