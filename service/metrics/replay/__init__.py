"""
Published answers of VQA models, folded by the very functions that `/score` calls.

One file for each metric whose answers were published: what its files look like, and what is done with their
faults.
"""
