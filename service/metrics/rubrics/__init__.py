"""Rubrics of models that grade: files, formulas of scores, and the parser of written answers."""
