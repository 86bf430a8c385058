"""How much of a change to the code the tests notice: `make mutants`."""
