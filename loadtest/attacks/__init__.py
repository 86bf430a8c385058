"""What strangers may try, each on a real process under a memory limit, and what it costs the others."""
