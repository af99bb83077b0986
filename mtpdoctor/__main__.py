"""``python -m mtpdoctor``."""

import sys

from mtpdoctor.cli.main import main

sys.exit(main())
