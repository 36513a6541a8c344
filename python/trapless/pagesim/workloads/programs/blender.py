# SPDX-License-Identifier: Apache-2.0
"""Run by Blender, without a window: makes a scene for Cycles, and settings and scripts whose start is short."""

import compileall
import shutil
import sys
from pathlib import Path

import addon_utils
import bpy

folder = Path(sys.argv[-1])

# Debian's scripts are not compiled, and all add-ons but the renderer only cost time.
for addon in list(bpy.context.preferences.addons.keys()):
    if addon != "cycles":
        addon_utils.disable(addon, default_set=True)
bpy.ops.wm.save_userpref()
cycles = Path(sys.modules["cycles"].__file__).parent
scripts = cycles.parent.parent
for name in ("modules", "startup", cycles.relative_to(scripts)):
    shutil.copytree(scripts / name, folder / "scripts" / name, ignore=shutil.ignore_patterns("__pycache__"))
compileall.compile_dir(folder / "scripts", quiet=1)

bpy.ops.object.select_all(action="SELECT")
bpy.ops.object.delete()
bpy.ops.mesh.primitive_plane_add(size=40)
for place in range(9):
    bpy.ops.mesh.primitive_monkey_add(location=(place % 3 * 3 - 3, place // 3 * 3 - 3, 1), rotation=(0, 0, place))
    head = bpy.context.object
    smooth = head.modifiers.new("smooth", "SUBSURF")
    smooth.levels = 2
    # Now, not at each start.
    bpy.ops.object.modifier_apply(modifier=smooth.name)
    material = bpy.data.materials.new(f"material {place}")
    material.use_nodes = True
    shader = material.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (place / 9, 0.5, 1 - place / 9, 1)
    shader.inputs["Roughness"].default_value = place / 9
    shader.inputs["Metallic"].default_value = place % 2
    head.data.materials.append(material)
bpy.ops.object.light_add(type="SUN", rotation=(0.6, 0.3, 0))
bpy.ops.object.camera_add(location=(9, -9, 8), rotation=(0.95, 0, 0.78))

scene = bpy.context.scene
scene.camera = bpy.context.object
scene.render.engine = "CYCLES"
scene.render.resolution_x, scene.render.resolution_y = 480, 270
scene.cycles.samples = 64
scene.cycles.seed = 1
scene.cycles.use_denoising = False
scene.cycles.use_adaptive_sampling = False
bpy.ops.wm.save_as_mainfile(filepath=str(folder / "scene.blend"), compress=False)
