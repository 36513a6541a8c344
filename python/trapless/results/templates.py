# SPDX-License-Identifier: Apache-2.0
"""Makes pages from the templates in this folder."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def render(template: str, **values: object) -> str:
    """Render a template. Values other than Markup are escaped. A name that the template uses must be given."""
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined,
                              trim_blocks=True)
    return environment.get_template(template).render(**values)
