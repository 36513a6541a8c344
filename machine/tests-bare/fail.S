/* SPDX-License-Identifier: Apache-2.0 */
/* Test case 7 fails. */
#include "test.h"
	BEGIN
	li a0, 1
	EXPECT(6, a0, 1)
	EXPECT(7, a0, 2)
	END
