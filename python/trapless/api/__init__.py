# SPDX-License-Identifier: Apache-2.0
"""Public names of `import trapless`."""
