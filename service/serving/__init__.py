"""Between a metric's `await` and a model's device: queues, batches, threads, Ray."""
