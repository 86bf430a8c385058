"""Where models' outcomes are kept, so that equal calls need not be made again."""
