"""
Published answers of models, folded by the functions that `/score` calls.

One file per metric.  Needs the package `scoregate-server`.
"""
