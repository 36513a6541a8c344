# SPDX-License-Identifier: Apache-2.0
"""numpy: memory maps for reading, copying on write, and writing."""

import numpy

words = numpy.memmap("/data/random.bin", dtype="<u8", mode="r")
print("sum", words.sum(dtype="u8"), words[::512].max(), len(words))
copy = numpy.memmap("/data/random.bin", dtype="<u8", mode="c", shape=(4096,))
copy += 1
print("copy on write", copy.sum(dtype="u8"), words[:4096].sum(dtype="u8"))
matrix = numpy.memmap("/data/matrix", dtype="f8", mode="w+", shape=(64, 512))
matrix[:] = numpy.arange(64 * 512).reshape(64, 512)
matrix.flush()
del matrix
again = numpy.memmap("/data/matrix", dtype="f8", mode="r", shape=(64, 512))
print("written", again.sum(), again[:, 7].tolist()[:4])
