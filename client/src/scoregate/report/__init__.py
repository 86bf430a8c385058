"""
The page of `scoregate report`: what a data set's scores say, in one file that asks nobody for anything.

Pure functions from scored rows to HTML; `scoregate.cli.report` scores and reads.  Needs the extra `evaluate`.
"""
