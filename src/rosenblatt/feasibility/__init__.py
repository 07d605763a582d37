"""Solving with perceptrons: points inside cones, linear programs, and proofs that there are none."""

from rosenblatt.feasibility.cones import Intersection, Polyhedral, SecondOrder, Semidefinite, symmetric
from rosenblatt.feasibility.conic import FoundInCone, find_in_cone
from rosenblatt.feasibility.dunagan_vempala import DunaganVempala
from rosenblatt.feasibility.found import Found
from rosenblatt.feasibility.interior import METHODS, find_interior
from rosenblatt.feasibility.linear_programs import solve_lp
from rosenblatt.feasibility.perceptron import Plain
from rosenblatt.feasibility.rescaling import Rescaling
from rosenblatt.feasibility.smooth import Smooth
from rosenblatt.feasibility.von_neumann import VonNeumann

__all__ = [
    "METHODS",
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
    "solve_lp",
    "symmetric",
]
