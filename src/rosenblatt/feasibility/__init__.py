"""Find points inside cones and solve linear programs by perceptrons, with a proof of each answer.

find_interior    x with A x > 0, or rows that add up to zero, by one of the METHODS
find_in_cone     a point inside a Polyhedral, SecondOrder or Semidefinite cone, or an Intersection of them
solve_lp         a linear program in the form of scipy's `linprog`, with its proof
solve_conic      the least ⟨c, x⟩ with (x, 1) in such a cone: a bracket of it, with its proof

rows, perceptron, rescaling, first_order    the methods, and the rows they work on
search, proof                               what a search shows and answers, and how weights become a proof
cones, conic                                points in cones
systems                                     chains of systems, in exact numbers
programs, linear_programs                   linear programs, and how they are solved
self_dual, conic_programs, conic_solving    conic programs, and how they are solved
"""

from rosenblatt.feasibility.cones import Intersection, Polyhedral, SecondOrder, Semidefinite, symmetric
from rosenblatt.feasibility.conic import FoundInCone, find_in_cone
from rosenblatt.feasibility.conic_programs import ConicSolution
from rosenblatt.feasibility.conic_solving import solve_conic
from rosenblatt.feasibility.first_order import Smooth, VonNeumann
from rosenblatt.feasibility.interior import METHODS, find_interior
from rosenblatt.feasibility.linear_programs import solve_lp
from rosenblatt.feasibility.perceptron import Plain
from rosenblatt.feasibility.rescaling import DunaganVempala, Rescaling
from rosenblatt.feasibility.search import Found

__all__ = [
    "METHODS",
    "ConicSolution",
    "DunaganVempala",
    "Found",
    "FoundInCone",
    "Intersection",
    "Plain",
    "Polyhedral",
    "Rescaling",
    "SecondOrder",
    "Semidefinite",
    "Smooth",
    "VonNeumann",
    "find_in_cone",
    "find_interior",
    "solve_conic",
    "solve_lp",
    "symmetric",
]
