"""Search the model of the hand-over for lost or invented rows. The same arguments give the same stories."""

import argparse
import logging
import time

from model.machine import HandOver, HandOverAtLeastOnce, explore
from model.rules import LEFT_OUT, without


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stories", type=int, default=2000, help="number of stories (default: %(default)s)")
    steps = "limit for the steps of a story, including faults (default: %(default)s)"
    parser.add_argument("--steps", type=int, default=50, help=steps)
    parser.add_argument("--without", nargs="+", default=[], choices=LEFT_OUT, help="rules to leave out", metavar="RULE")
    parser.add_argument("--at-least-once", action="store_true", help="search without Kafka's transactions")
    options = parser.parse_args()
    logging.getLogger("databus").setLevel(logging.WARNING)
    begin = time.monotonic()
    with without(*options.without):
        explore(HandOverAtLeastOnce if options.at_least_once else HandOver, options.stories, steps=options.steps)
    print(f"{options.stories} stories of up to {options.steps} steps in {time.monotonic() - begin:.0f} s: no violation")


if __name__ == "__main__":
    main()
