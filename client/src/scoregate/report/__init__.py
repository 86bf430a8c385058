"""
The page of `scoregate report`: the scores of a data set, in one self-contained file.

Pure functions from scored rows to HTML; `scoregate.cli.report` scores and reads.  Needs the extra `evaluate`.
"""
