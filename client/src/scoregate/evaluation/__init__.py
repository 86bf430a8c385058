"""
How far to trust scores: figures that compare metrics, generators and raters.

Pure functions over columns of numbers and names, each in the file of its topic:

    from scoregate.evaluation.agreement import auroc, correlation
    from scoregate.evaluation.pair_accuracy import pair_accuracy, preference

The command `scoregate evaluate` reads the columns from files.  Needs the extra `evaluate`.
docs/reference/figures.md defines every figure.
"""
