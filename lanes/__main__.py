"""`python -m lanes`: the same as `lanes`."""

import sys

from lanes.cli import main

sys.exit(main())
