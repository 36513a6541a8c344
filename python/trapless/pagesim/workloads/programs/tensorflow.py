# SPDX-License-Identifier: Apache-2.0
"""Inference by TensorFlow Lite: batches through the dense layers of a transformer's blocks, whose weights are drawn at random.

tensorflow.py make|run FILE
"""

import sys
from pathlib import Path

import numpy

WIDTH, INNER, BLOCKS, BATCH = 384, 1536, 8, 8
RUNS = 10_000


def network() -> bytes:
    """A TensorFlow Lite file: in each block four layers of WIDTH, one up to INNER and one back."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    random = numpy.random.default_rng(1)
    model, graph = schema.ModelT(), schema.SubGraphT()
    model.version, model.subgraphs, model.buffers = 3, [graph], [schema.BufferT()]
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.FULLY_CONNECTED
    code.version, model.operatorCodes = 1, [code]
    graph.tensors, graph.operators = [], []

    def tensor(shape: tuple[int, ...], weights: bool) -> int:
        it = schema.TensorT()
        it.shape, it.type, it.name, it.buffer = list(shape), schema.TensorType.FLOAT32, f"tensor {len(graph.tensors)}", 0
        if weights:
            values = schema.BufferT()
            values.data = (random.standard_normal(shape) / shape[-1] ** 0.5).astype("<f4").view(numpy.uint8).ravel()
            it.buffer = len(model.buffers)
            model.buffers.append(values)
        graph.tensors.append(it)
        return len(graph.tensors) - 1

    at = tensor((BATCH, WIDTH), weights=False)
    graph.inputs, width = [at], WIDTH
    for to in [WIDTH, WIDTH, WIDTH, WIDTH, INNER, WIDTH] * BLOCKS:
        layer, options = schema.OperatorT(), schema.FullyConnectedOptionsT()
        options.fusedActivationFunction = schema.ActivationFunctionType.RELU
        layer.opcodeIndex, layer.builtinOptionsType = 0, schema.BuiltinOptions.FullyConnectedOptions
        layer.builtinOptions, layer.inputs = options, [at, tensor((to, width), weights=True), -1]
        at, width = tensor((BATCH, to), weights=False), to
        layer.outputs = [at]
        graph.operators.append(layer)
    graph.outputs = [at]
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def infer(path: str) -> None:
    """Batch after batch."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(path, num_threads=1)
    interpreter.allocate_tensors()
    place = interpreter.get_input_details()[0]
    batch = numpy.random.default_rng(2).random(place["shape"], numpy.float32)
    for _ in range(RUNS):
        interpreter.set_tensor(place["index"], batch)
        interpreter.invoke()


if sys.argv[1] == "make":
    Path(sys.argv[2]).write_bytes(network())
else:
    infer(sys.argv[2])
