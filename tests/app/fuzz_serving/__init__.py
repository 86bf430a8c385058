"""Random traffic on the core: pools, models that come and go, and replicas, with an oracle for each."""
