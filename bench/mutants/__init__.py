"""Tests are tested: small mistakes are planted in the sources, one at a time, and some test must fail for each."""
