"""Check every file of results/, and print one line for each fault.

python evidence/check_results.py                  structure, places, ranges, reasons, intervals
python evidence/check_results.py --against main   also: has a number vanished since, or changed in silence?
"""

import argparse
import sys
from pathlib import Path

from records.check import faults
from records.earlier import changes
from records.files import FOLDER, paths


def main(words: list[str] | None = None) -> int:
    """The exit code: 2 if there is a fault."""
    parser = argparse.ArgumentParser(description="Check the records of reported and measured numbers.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the records")
    parser.add_argument("--against", metavar="REVISION", help="commit, branch or tag to compare with")
    options = parser.parse_args(words)
    lines = faults(options.folder)
    if options.against is not None:
        try:
            lines += changes(options.folder, options.against)
        except ValueError as error:
            parser.error(str(error))
    print(*lines, f"{len(lines)} faults in {len(paths(options.folder))} files", sep="\n")
    return 2 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
