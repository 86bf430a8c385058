"""
Baseline servers and a loop to compare the service with, as processes.

The servers use the wire format of `POST /score`, and their model is a `time.sleep` of the same length as
the service's fake.
"""
