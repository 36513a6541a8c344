/* SPDX-License-Identifier: Apache-2.0 */
/* Never says anything. */
#include "test.h"
	BEGIN
	j park
	END
