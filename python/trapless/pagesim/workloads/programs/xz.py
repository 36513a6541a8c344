# SPDX-License-Identifier: Apache-2.0
"""Writes a text of seeded random words, a few frequent and many rare, for xz to compress: xz.py FILE."""

import random
import sys
from itertools import accumulate
from pathlib import Path
from string import ascii_lowercase

WORDS, BYTES = 200_000, 8_000_000

random.seed(1)
words = ["".join(random.choices(ascii_lowercase, k=random.randint(2, 9))) for _ in range(WORDS)]
weights = list(accumulate(rank**-0.8 for rank in range(1, WORDS + 1)))
Path(sys.argv[1]).write_text(" ".join(random.choices(words, cum_weights=weights, k=BYTES // 6)))
