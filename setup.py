# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: a wheel knows the checkout that it was built in, whose machine, kernel and studies it uses."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPy(build_py):
    """Leaves the checkout's path beside base/paths.py."""

    def run(self) -> None:
        """Build, then say where."""
        super().run()
        if not self.editable_mode:
            place = Path(self.build_lib) / "trapless" / "base" / "checkout.txt"
            place.write_text(f"{Path(__file__).resolve().parent}\n")


setup(cmdclass={"build_py": BuildPy})
