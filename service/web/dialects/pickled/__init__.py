"""The dialects whose bodies are pickles: read opcode by opcode, and never unpickled."""
