# SPDX-License-Identifier: Apache-2.0
"""Pages from the templates of this folder."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: str, **values: object) -> str:
    """The page; what is no Markup is escaped, and a name that the template uses must be there."""
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True)
    return environment.get_template(template).render(**values)
