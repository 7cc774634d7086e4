"""``python -m dchoices.claims DATA_DIR OUT.json [STUDY ...]`` checks every claim on the datasets of a run.

Where studies are named the run holds these alone, and claims about others are undecided.
"""

import sys

from dchoices.claims.engine import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
