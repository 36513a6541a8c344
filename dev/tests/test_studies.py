# SPDX-License-Identifier: Apache-2.0
"""Studies register themselves: adding a folder is enough (CONTRIBUTING.md, "Add a study")."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from trapless.base.paths import PYTHONPATH, ROOT, STUDIES
from trapless.study.catalogue import ALL

TOY = '''"""A toy."""

from trapless.results.columns import Column, word
from trapless.study.experiment import Experiment, Study, Table

COLUMNS = (word("kind", "kind", "Which."), Column("value", "v", "How many.", "1", None, ".0f"))
STUDY = Study("TOY: a study of nothing", {"toy-1": Experiment("one is one", lambda setup: [{"kind": "one", "value": 1.0}],
                                                              {"toy-1": Table(COLUMNS)},
                                                              guest=False)})
'''


def test_a_toy_study_is_one_folder(tmp_path: Path) -> None:
    (tmp_path / "python").symlink_to(ROOT / "python")
    shutil.copytree(STUDIES, tmp_path / "studies")
    (tmp_path / "studies" / "toy").mkdir()
    (tmp_path / "studies" / "toy" / "__init__.py").write_text(TOY)
    env = os.environ | {"TRAPLESS_ROOT": str(tmp_path), "TRAPLESS_CACHE": str(tmp_path / "cache"),
                        "PYTHONPATH": PYTHONPATH.replace(str(ROOT), str(tmp_path))}
    command = [sys.executable, "-m", "trapless.cli", "study"]
    listed = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "toy-1" in listed and "one is one" in listed
    subprocess.run([*command, "toy-1", "--out", tmp_path / "out"], env=env, cwd=tmp_path, check=True)
    assert "| one | 1 |" in (tmp_path / "out" / "results.md").read_text()


def test_each_study_has_all_of_its_paper() -> None:
    assert set(ALL) == {"isca20", "fpga", "aspf", "stc", "costs"}
    for name, study in ALL.items():
        assert study.experiments and (name == "costs" or (STUDIES / name / "paper.toml").is_file())
