# SPDX-License-Identifier: Apache-2.0
"""What `import trapless` offers."""
