"""The command `scoregate`: scores, ranks and thresholds from a terminal or a script."""
