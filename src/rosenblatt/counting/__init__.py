"""Counting what Python code executes, and how the count grows with the input.

`count_operations` runs a function and counts its operations, by kind and by line. `growth` does so at several sizes and
names the law behind the counts. `measure_resources` measures what a clock and the memory say of the same function.

    operations    the counts of one run
    growth_rates  the law behind the counts of several
    laws          what a law is, and what follows from it
    resources     seconds and bytes
    rewriting     the counted version of a function
    meter         what counts while it runs, and the calls whose cost depends on a size
"""

from rosenblatt.counting.growth_rates import growth
from rosenblatt.counting.laws import Growth
from rosenblatt.counting.operations import Operations, count_operations
from rosenblatt.counting.resources import Resources, measure_resources

__all__ = ["Growth", "Operations", "Resources", "count_operations", "growth", "measure_resources"]
