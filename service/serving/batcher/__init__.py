"""Batches on demand: the queues of models, the scheduler, and the threads that run batches."""
