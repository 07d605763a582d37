"""Counting what Python code executes, and how the count grows with the input.

`count_operations` runs a function and counts its operations, by kind and by line. `growth` does so at several sizes and
names the law behind the counts.

    operations    the counts of one run
    growth_rates  the law behind the counts of several
    rewriting     the counted version of a function
    meter         what counts while it runs, and the calls whose cost depends on a size
"""

from rosenblatt.counting.growth_rates import Growth, growth
from rosenblatt.counting.operations import Operations, count_operations

__all__ = ["Growth", "Operations", "count_operations", "growth"]
