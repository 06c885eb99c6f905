"""Benches: run by hand, CPU seconds and ratios, no timed test.  See README.md."""
