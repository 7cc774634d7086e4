"""``python -m dchoices.claims DATA_DIR OUT.json`` checks every claim on the datasets of a run."""

import sys

from dchoices.claims.engine import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
