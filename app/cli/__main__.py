"""``python -m app.cli``, for a source tree that is not installed."""

import sys

from app.cli import main

sys.exit(main())
