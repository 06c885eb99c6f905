"""The decisions of Lanes, pure and stdlib only: values in, values out, no clock, no I/O.

`now` and jitter always come in as arguments.  A rule whose test needs a fixture is in the wrong place.
"""
