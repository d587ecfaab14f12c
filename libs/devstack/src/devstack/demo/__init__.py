"""The demo: a shop under load goes through the whole pipeline into a lake, and every table is compared there."""
