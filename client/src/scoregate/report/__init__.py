"""
The page of `scoregate report`: the scores of a data set, in one self-contained file.

Pure functions from scored rows to HTML; `dataset` scores and reads.  Needs the extra `evaluate`.
"""
