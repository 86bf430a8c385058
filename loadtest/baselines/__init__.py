"""
The servers and the loop that people write first, as processes to compare the service with.

The servers speak the wire format of `POST /score`, and their model is a `time.sleep` of the same length as
the service's fake.
"""
