"""HTTP: requests to what the engine works on, and its reports to answers.  Nothing else knows of it."""
