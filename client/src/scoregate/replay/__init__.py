"""
Published answers of models, folded by the functions that `/score` calls.

The formulas stand in the package `scoregate-server`, and this folder is the only part of the client that
imports it.  No extra requires that package: while its name is not ours on the public index, an installer
could get somebody else's.
"""
