"""Work that several callers share or limit; knows nothing of models, metrics or HTTP."""
