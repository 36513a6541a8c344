# SPDX-License-Identifier: Apache-2.0
"""The suite `lint`: ruff over all Python, codespell over pages, comments and messages. dev/spelling.txt has words that codespell
takes for others and that are right here: names, and instructions and registers of RISC-V."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trapless.base.paths import DEV, ROOT, RTL, STUDIES

SPELT = ("*.md", "*.ipynb", "*.py", "*.rs", "*.sv", "*.toml", "*.cff", ":!dev/tests")
"""Files whose words are looked at; tests have misspelt words on purpose."""


def ruff() -> list[str]:
    """The command that looks at all Python."""
    return [sys.executable, "-m", "ruff", "check", "-q", "--no-cache", "--config", str(DEV / "pyproject.toml"),
            *map(str, (DEV, ROOT / "python", STUDIES, RTL))]


def codespell(root: Path = ROOT) -> list[str]:
    """The command that looks at all words."""
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", "--", *SPELT], cwd=root, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    there = sorted({name for name in files if name and (root / name).is_file()})
    return [sys.executable, "-m", "codespell_lib", "--ignore-words", str(DEV / "spelling.txt"), *there]


def main() -> int:
    """Run both; 1 if one has found something."""
    failed = [command[2] for command in (ruff(), codespell()) if subprocess.run(command, cwd=ROOT, check=False).returncode]
    print(f"{2 - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
