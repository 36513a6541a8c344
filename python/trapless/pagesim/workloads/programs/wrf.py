# SPDX-License-Identifier: Apache-2.0
"""Makes a case for OpenFOAM: air over a hot spot of the ground, from OpenFOAM's own example on a finer grid: wrf.py FOLDER."""

import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path("/usr/share/doc/openfoam-examples/examples/heatTransfer/buoyantBoussinesqPimpleFoam/hotRoom")

case = Path(sys.argv[1])
shutil.copytree(EXAMPLE, case)
for name, old, new in (
    ("blockMeshDict", "(20 10 20)", "(64 32 64)"),
    # Read sooner than text.
    ("controlDict", "writeFormat     ascii", "writeFormat     binary"),
):
    path = case / "system" / name
    text = path.read_text()
    if text.count(old) != 1:
        sys.exit(f"{path}: no {old!r}")
    path.write_text(text.replace(old, new))
shutil.copy(case / "0" / "T.orig", case / "0" / "T")
for tool in ("blockMesh", "setFields"):
    subprocess.run([tool, "-case", case], check=True)
